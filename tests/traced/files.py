"""Models in files, and whether a model from the cache has read its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import irload
from irload.core.tensor import Array
from irload.model import Model
from irload.model_cache.cached_dynamic import CachedDynamicModel
from irload.runtime.compiled_model import CompiledModel


def values(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def saved(model: Model, folder: Path) -> Path:
    irload.save_model(model, folder / "model.xml")
    return folder / "model.xml"


def is_light(compiled: CompiledModel) -> bool:
    """True if the model was not read."""
    return isinstance(compiled, CachedDynamicModel) and compiled._whole is None

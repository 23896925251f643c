"""Datasets in, datasets out: `predict` in this process or several, `Predictor` for Ray Data's map_batches."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irload.batch.predictor import Predictor
    from irload.batch.stream import Prediction, predict

__all__ = ["Prediction", "Predictor", "predict"]

_HOMES = {
    "Prediction": "irload.batch.stream",
    "Predictor": "irload.batch.predictor",
    "predict": "irload.batch.stream",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'irload.batch' has no attribute '{name}'")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value

"""Comparison of objects that may contain sizes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from irload.core.size import is_size


def hashable(item: Any) -> Hashable:
    """A hashable object that is equal for equal items, whose sizes are compared as polynomials."""
    if is_size(item):
        return "size", item.key
    if isinstance(item, tuple | list):
        return tuple(map(hashable, item))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(item, slice):
        return "slice", *map(hashable, (item.start, item.stop, item.step))
    if isinstance(item, np.ndarray):
        return "array", id(item)
    if is_dataclass(item) and not isinstance(item, type):
        return type(item), *(hashable(getattr(item, f.name)) for f in fields(item))
    return item if isinstance(item, Hashable) else ("object", id(item))

"""Hashable keys that compare objects of a plan, which may contain symbolic sizes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from irload.core.size import is_size

PLAIN = frozenset((int, str, bool, float, type(None)))
"""Types of hashable objects that never contain sizes."""


@cache
def field_names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass; None for any other type."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else None


def hashable(item: Any) -> Hashable:
    """Return a hashable key: keys of two objects are equal if the objects are, with sizes compared as polynomials."""
    if type(item) in PLAIN:
        return item
    if is_size(item):
        return "size", item.key
    if isinstance(item, tuple | list):
        return tuple(map(hashable, item))
    if isinstance(item, slice):
        return "slice", *map(hashable, (item.start, item.stop, item.step))
    if isinstance(item, np.ndarray):
        return "array", id(item)
    names = field_names(type(item))
    if names is not None:
        return type(item), *[hashable(getattr(item, name)) for name in names]
    return item if isinstance(item, Hashable) else ("object", id(item))

"""Checks of ports that several families share: integer types, ranks, axes."""

from __future__ import annotations

import numpy as np

from irload.core.element import ElementType
from irload.core.shape import normalize_axis
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch


def require_integer(**ports: TensorType) -> None:
    """Raise TypeMismatch for a port that is not of an integer type (dynamic passes)."""
    for name, tensor in ports.items():
        if not (tensor.element.is_integer or tensor.element.is_dynamic):
            raise TypeMismatch(f"{name} must be of an integer type, found {tensor.element}")


def require_element(name: str, tensor: TensorType, *allowed: ElementType) -> None:
    """Raise TypeMismatch for a port whose type is not in `allowed` (dynamic passes)."""
    if not (tensor.element in allowed or tensor.element.is_dynamic):
        raise TypeMismatch(f"{name} must be of type {' or '.join(e.name for e in allowed)}, found {tensor.element}")


def require_rank(name: str, tensor: TensorType, *ranks: int) -> None:
    """Raise ShapeMismatch for a port whose rank is known and not in `ranks`."""
    if tensor.rank is not None and tensor.rank not in ranks:
        raise ShapeMismatch(f"{name} must be of rank {' or '.join(map(str, ranks))}, found shape {tensor.shape}")


def require_scalar(name: str, tensor: TensorType) -> None:
    """Raise ShapeMismatch for a port that can be neither a scalar nor a 1-D tensor of one element."""
    if tensor.rank is not None and (tensor.rank > 1 or (tensor.rank == 1 and not tensor.shape[0].contains(1))):
        raise ShapeMismatch(f"{name} must be a scalar or hold one element, found shape {tensor.shape}")


def as_i64(indices: Array) -> Array:
    """Indices as i64. u64 values beyond i64 become its maximum, which is out of range for every axis."""
    bounded = np.minimum(indices, np.iinfo(np.int64).max) if indices.dtype == np.uint64 else indices
    return bounded.astype(np.int64, copy=False)


def all_within(indices: Array, size: int) -> bool:
    """True if all indices, in i64, are in 0..size − 1. As unsigned integers, negative ones are greater."""
    return not indices.size or bool(indices.view(np.uint64).max() < size)


def known_axis(axis: TensorType, rank: int | None, name: str = "axis") -> int | None:
    """The value of an axis port, counted from the front if the rank is known; None if the value is unknown.

    Raises ShapeMismatch if it is out of range, and TypeMismatch if it is not an integer.
    """
    require_integer(**{name: axis})
    require_scalar(name, axis)
    values = axis.ints
    if not values:
        return None
    return values[0] if rank is None else normalize_axis(values[0], rank, name)

"""TopK: the k greatest or least elements along an axis, and their indices."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, ElementType, i8, i32, i64
from irload.core.op import Op
from irload.core.shape import Dim, normalize_axis
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch, TypeMismatch

FEW = 64
"""From this number of elements per requested index on, a line is partitioned, and only candidates are sorted."""


class TopKBase(Op):
    """Base of all versions of TopK."""

    axis = attr.integer(default=0, spec_required=True)
    mode = attr.choice("max", "min", default="max", spec_required=True)
    sort = attr.choice("none", "index", "value", default="none", spec_required=True)
    index_element_type = attr.element_type(default=i32, among=INDEX)

    def infer(self, x: TensorType, k: TensorType) -> tuple[TensorType, TensorType]:
        self.check_k_type(k.element)
        if k.rank not in (None, 0):
            raise ShapeMismatch(f"k must be a scalar, found {k.shape}")
        shape = x.shape
        if shape.rank is not None:
            if not shape.rank:
                raise ShapeMismatch("x must have at least one axis, found a scalar")
            axis = normalize_axis(self.axis, shape.rank)
            shape = shape.with_dim(axis, _length(shape[axis], k))
        return TensorType(x.element, shape), TensorType(self.index_element_type, shape)

    def check_k_type(self, element: ElementType) -> None:
        """Raise TypeMismatch for a type that k must not have."""
        if not (element.is_integer or element.is_dynamic):
            raise TypeMismatch(f"k must be of an integer type, found {element}")

    def compute(self, x: Array, k: Array) -> tuple[Array, Array]:
        order = first_of_ranking(x, self.axis, self.mode == "max", int(k))
        if self.sort == "index":
            order.sort(self.axis)
        return np.take_along_axis(x, order, self.axis), order.astype(self.index_element_type.dtype)


def first_of_ranking(x: Array, axis: int, descending: bool, k: int) -> Array:
    """The first `k` indices of the ranking along `axis`."""
    if k * FEW > x.shape[axis] or not x.size or not k:
        return np.take(ranking(x, axis, descending), np.arange(k), axis)
    lines = np.moveaxis(x, axis, -1)
    indices = np.stack([_first_of_line(line, descending, k) for line in lines.reshape(-1, lines.shape[-1])])
    return np.moveaxis(indices.reshape(*lines.shape[:-1], k), -1, axis)


def _first_of_line(line: Array, descending: bool, k: int) -> Array:
    """The first `k` indices of the ranking of a line. Sorts only elements that are not worse than the k-th."""
    if descending:
        candidates = np.flatnonzero(~(line < np.partition(line, -k)[-k]))
    else:
        candidates = np.flatnonzero(~(line > np.partition(line, k - 1)[k - 1]))
    return candidates[ranking(line[candidates], 0, descending)[:k]]


def ranking(x: Array, axis: int, descending: bool) -> Array:
    """The indices that sort `x` along `axis`; equal elements by ascending index in either order."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    # A stable descending order is the reverse of the stable ascending order of the reversed data.
    mirrored = np.argsort(np.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(mirrored, axis)


def _length(dim: Dim, k: TensorType) -> Dim:
    """The possible sizes of the axis after the selection."""
    if k.ints is not None and k.ints[0] < 0:
        raise ShapeMismatch(f"k must not be negative, found {k.ints[0]}")
    if k.dims is None:
        return Dim(0, dim.hi)
    known = k.dims[0]
    if dim.hi is not None and known.lo > dim.hi:
        raise ShapeMismatch(f"k must not exceed the length of its axis, found {known} for {dim}")
    if known.is_static:
        return known
    ends = [end for end in (dim.hi, known.hi) if end is not None]
    return Dim(min(dim.lo, known.lo), min(ends) if dim.hi is not None else None)


class TopK(TopKBase, since=1):
    """The `k` greatest (mode max) or least (mode min) elements along `axis`, and their indices.

    Specification: TopK-1. `sort` orders each slice by value or by index; with none the order is free, and irload sorts
    by value. Of equal elements the one of lower index ranks first. k must not exceed the length of the axis, and is i8,
    i32 or i64. Outputs: values of the type of `x`, indices of `index_element_type`.
    """

    def check_k_type(self, element: ElementType) -> None:
        if element not in (i8, i32, i64) and not element.is_dynamic:
            raise TypeMismatch(f"k must be i8, i32 or i64, found {element}")


class TopK3(TopKBase, type="TopK", since=3):
    """TopK with `k` of any integer type. Specification: TopK-3."""


class TopK11(TopK3, type="TopK", since=11):
    """TopK with the attribute `stable`: equal elements keep their order. Specification: TopK-11.

    irload always preserves it, so the attribute has no effect. It is not allowed with sort none.
    """

    stable = attr.boolean(default=False)

    def validate(self) -> None:
        if self.stable and self.sort == "none":
            raise AttributeInvalid("attribute stable requires a sort by value or index, found none")

"""Pad, in OpenVINO's two versions and in nGraph's, which also pads between elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.bounds import moved
from irload.core.element import merge, string
from irload.core.op import Op
from irload.core.shape import Dim, Shape
from irload.core.tensor import UNBOUNDED_HI, Array, Bounds, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch, TypeMismatch
from irload.ops.movement.slicing import Interval, intervals
from irload.ops.ports import require_integer

MODES = ("constant", "edge", "reflect", "symmetric")


def pad_array(data: Array, begin: Sequence[int], end: Sequence[int], mode: str, value: Array) -> Array:
    """`data` padded by `begin` and `end` elements per axis; negative counts crop."""
    if mode == "constant":
        return _pad_constant(data, begin, end, value)
    for axis, (b, e) in enumerate(zip(begin, end, strict=True)):
        if b or e:
            data = np.take(data, _sources(data.shape[axis], b, e, mode), axis)
    return data


def _pad_constant(data: Array, begin: Sequence[int], end: Sequence[int], value: Array) -> Array:
    result = np.full([b + n + e for b, n, e in zip(begin, data.shape, end, strict=True)], value, data.dtype)
    overlap = [
        (max(b, 0), min(b + n, b + n + e), max(-b, 0)) for b, n, e in zip(begin, data.shape, end, strict=True)
    ]  # slices of the result and of the data
    target = tuple(slice(start, max(start, stop)) for start, stop, _ in overlap)
    source = tuple(slice(at, at + max(0, stop - start)) for start, stop, at in overlap)
    result[target] = data[source]
    return result


def _sources(size: int, begin: int, end: int, mode: str) -> Array:
    """For each position along a padded axis, the index of the element to copy."""
    at = np.arange(-begin, size + end)
    if mode == "edge":
        return at.clip(0, size - 1)
    edge = 0 if mode == "reflect" else 1  # symmetric repeats the edge element, reflect does not
    at = np.where(at < 0, -at - edge, at)
    return np.where(at >= size, 2 * (size - 1) - at + edge, at)


def check_counts(dim: Dim, begin: int, end: int, mode: str, axis: int) -> None:
    """Raise ShapeMismatch if an axis is too short for its mode, or if it is cropped below zero."""
    if dim.hi is None:
        return
    longest = {"constant": None, "edge": None, "reflect": dim.hi - 1, "symmetric": dim.hi}[mode]
    if longest is not None and max(begin, end) > longest and max(begin, end) > 0:
        raise ShapeMismatch(
            f"pads {begin} and {end} on axis {axis} must not exceed {longest} in mode {mode}; the dimension is {dim}"
        )
    if mode == "edge" and dim.hi == 0 and (begin > 0 or end > 0):
        raise ShapeMismatch(f"axis {axis} is empty, so mode edge has nothing to copy")
    if dim.hi + begin + end < 0:
        raise ShapeMismatch(f"pads {begin} and {end} on axis {axis} crop more than the dimension {dim}")


def _counts(pads: TensorType) -> list[Interval] | None:
    """The least and greatest count per axis. Known counts are exact, however large."""
    return intervals(pads) if pads.ints is None else [(n, n) for n in pads.ints]


class Pad(Op, since=1):
    """Pads a tensor by `pads_begin` and `pads_end` elements per axis.

    Specification: Pad-1. Counts must not exceed dim − 1 in mode reflect, nor dim in mode symmetric. Negative counts,
    which the specification does not allow, crop, as in OpenVINO.
    """

    pad_mode = attr.choice(*MODES, default="constant", spec_required=True)

    widens = False

    def infer(
        self, data: TensorType, pads_begin: TensorType, pads_end: TensorType, pad_value: TensorType | None = None
    ) -> TensorType:
        require_integer(pads_begin=pads_begin, pads_end=pads_end)
        element = data.element
        if element is string and self.pad_mode != "constant":
            raise TypeMismatch(f"pad_mode {self.pad_mode} does not take strings")
        if pad_value is not None and self.pad_mode == "constant":
            element = merge(data.element, pad_value.element)
            if pad_value.rank not in (None, 0):
                raise ShapeMismatch(f"pad_value must be a scalar, found {pad_value.shape}")
        return TensorType(element, self._padded(data.shape, pads_begin, pads_end))

    def _padded(self, shape: Shape, pads_begin: TensorType, pads_end: TensorType) -> Shape:
        for name, pads in (("pads_begin", pads_begin), ("pads_end", pads_end)):
            expected = Shape.any(1) if shape.rank is None else Shape(shape.rank)
            if expected.meet(pads.shape) is None:
                raise ShapeMismatch(f"{name} must have one value for each axis of data {shape}, found {pads.shape}")
        if shape.rank is None:
            return Shape.unranked()
        begin, end = _counts(pads_begin), _counts(pads_end)
        if begin is None or end is None:
            return Shape.any(shape.rank)
        dims: list[Dim] = []
        for axis, (dim, first, last) in enumerate(zip(shape, begin, end, strict=True)):
            if first[0] == first[1] and last[0] == last[1]:
                check_counts(dim, first[0], last[0], self.pad_mode, axis)
            low = dim.lo + first[0] + last[0]
            bounded = dim.hi is not None and UNBOUNDED_HI not in (first[1], last[1])
            high = max(dim.hi + first[1] + last[1], 0) if bounded and dim.hi is not None else None
            dims.append(Dim(max(low, 0), high))
        return Shape(*dims)

    def compute(self, data: Array, pads_begin: Array, pads_end: Array, pad_value: Array | None = None) -> Array:
        value = np.zeros((), data.dtype) if pad_value is None else pad_value
        return pad_array(data, pads_begin.tolist(), pads_end.tolist(), self.pad_mode, value)

    def bounds(self, *inputs: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, inputs, (0, 3))


class Pad12(Pad, type="Pad", since=12):
    """Pad with negative counts, which crop (Pad-12)."""


class NGraphPad(Op, type="Pad", opset="ngraph"):
    """Pad of nGraph: counts are attributes, may be negative, and `padding_interior` pads between elements.

    Output dim: below + (d − 1)(interior + 1) + 1 + above for d > 0, below + above for d = 0. Interior elements are
    copies of `arg_pad_value` in every mode.
    """

    padding_below = attr.integers()
    padding_above = attr.integers()
    padding_interior = attr.integers(default=(), rule=attr.non_negative)
    pad_mode = attr.choice(*MODES, default="constant")

    widens = False

    def validate(self) -> None:
        below, above, interior = self.padding_below, self.padding_above, self.padding_interior
        if len(below) != len(above) or (interior and len(interior) != len(below)):
            raise AttributeInvalid(
                "padding_below, padding_above and padding_interior must have equal lengths, "
                f"found {len(below)}, {len(above)} and {len(interior)}"
            )

    def infer(self, arg: TensorType, arg_pad_value: TensorType) -> TensorType:
        element = merge(arg.element, arg_pad_value.element)
        if arg_pad_value.rank not in (None, 0):
            raise ShapeMismatch(f"arg_pad_value must be a scalar, found {arg_pad_value.shape}")
        if arg.rank is None:
            return TensorType(element, Shape.any(len(self.padding_below)))
        if arg.rank != len(self.padding_below):
            raise ShapeMismatch(f"padding_below has {len(self.padding_below)} values for a tensor of rank {arg.rank}")
        return TensorType(element, Shape(*map(self._dim, arg.shape, range(arg.rank))))

    def _dim(self, dim: Dim, axis: int) -> Dim:
        below, above = self.padding_below[axis], self.padding_above[axis]
        interior = self.padding_interior[axis] if self.padding_interior else 0
        dilated = Dim(_dilated(dim.lo, interior), None if dim.hi is None else _dilated(dim.hi, interior))
        check_counts(dilated, below, above, self.pad_mode, axis)
        return dilated + (below + above)

    def compute(self, arg: Array, arg_pad_value: Array) -> Array:
        interior = self.padding_interior or (0,) * arg.ndim
        dilated = np.full([_dilated(n, i) for n, i in zip(arg.shape, interior, strict=True)], arg_pad_value, arg.dtype)
        dilated[tuple(slice(None, None, i + 1) for i in interior)] = arg
        return pad_array(dilated, self.padding_below, self.padding_above, self.pad_mode, arg_pad_value)


def _dilated(size: int, interior: int) -> int:
    """The length of an axis with `interior` elements between neighbours."""
    return (size - 1) * (interior + 1) + 1 if size else 0

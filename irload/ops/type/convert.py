"""Conversion of the element type: to a given type, or to the type of another tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.bounds import bounds_of
from irload.core.context import RunContext
from irload.core.element import ElementType, dynamic, i64, string
from irload.core.op import Op
from irload.core.tensor import UNBOUNDED_HI, Array, Bounds, TensorType
from irload.errors import ExecutionError, TypeMismatch
from irload.ops.casting import convert, to_integer


class Convert(Op, since=1):
    """Converts x to `destination_type`.

    Specification: Convert-1. Floats are truncated towards zero to integers, and integers wrap to the width of the new
    type. NaN and floats outside the 32-bit range (64-bit for 64-bit types) become the smallest integer of that range,
    then wrap. As a boolean, every value except zero is true.
    """

    destination_type = attr.element_type(default=dynamic, spec_required=True)

    widens = False

    def infer(self, x: TensorType) -> TensorType:
        _check_strings(x.element, self.destination_type)
        return TensorType(self.destination_type, x.shape)

    def compute(self, x: Array) -> Array:
        if self.destination_type is dynamic:
            raise ExecutionError("cannot convert to no type: attribute destination_type is missing or dynamic")
        return convert(x, self.destination_type)

    def bounds(self, x: TensorType) -> Sequence[Bounds | None] | None:
        known, to = bounds_of(x), self.destination_type
        if known is None or not to.is_numeric or to.bits < 8:
            return None
        if to.bits >= 32 or to.is_float:
            return [Bounds(_end(known.lower, to), _end(known.upper, to))]
        # A bound outside a narrow type makes every value of that type possible, because values wrap.
        info, lower, upper = np.iinfo(to.dtype), _end(known.lower, i64), _end(known.upper, i64)
        fits = (lower >= info.min) & (upper <= info.max)
        return [Bounds(np.where(fits, lower, info.min), np.where(fits, upper, info.max))]


def _check_strings(source: ElementType, target: ElementType) -> None:
    if string in (source, target) and source is not target:
        raise TypeMismatch(f"strings cannot be converted: {source} to {target}")


def _end(values: Array, to: ElementType) -> Array:
    """Converts bounds to another type; unbounded ends stay unbounded. Floats narrower than f32 are stored as f32."""
    if to.is_float:
        with np.errstate(over="ignore"):  # an unbounded end overflows in f16
            converted = values.astype(to.dtype).astype(np.float32 if to.bits < 32 else to.dtype)
        return np.where(values == UNBOUNDED_HI, converted.dtype.type(UNBOUNDED_HI), converted)
    whole = to_integer(values, np.dtype(np.int64)) if values.dtype.kind == "f" else values
    return np.where(values == UNBOUNDED_HI, UNBOUNDED_HI, whole)


class ConvertLike(Op, since=1):
    """Converts x to the element type of `like`, by the rules of Convert. Specification: ConvertLike-1."""

    widens = False

    def infer(self, x: TensorType, like: TensorType) -> TensorType:
        if dynamic not in (x.element, like.element):
            _check_strings(x.element, like.element)
        return TensorType(like.element, x.shape)

    def compute(self, x: Array, like: Array, *, context: RunContext) -> Array:
        return convert(x, context.outputs[0].element)

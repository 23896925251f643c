"""Conversion of the element type: to a named one, or to that of another tensor."""

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
    """The values of x in `destination_type`.

    Specification: Convert-1. Floats become integers by truncation towards zero, integers wrap to the width of the new
    type; what fits no integer becomes the smallest. Everything but zero becomes true.
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
        # What does not fit a narrow type wraps, so that anything may come of it.
        info, lower, upper = np.iinfo(to.dtype), _end(known.lower, i64), _end(known.upper, i64)
        fits = (lower >= info.min) & (upper <= info.max)
        return [Bounds(np.where(fits, lower, info.min), np.where(fits, upper, info.max))]


def _check_strings(found: ElementType, wanted: ElementType) -> None:
    if string in (found, wanted) and found is not wanted:
        raise TypeMismatch(f"strings cannot be converted: {found} to {wanted}")


def _end(values: Array, to: ElementType) -> Array:
    """Bounds in another type. Those that mean unbounded stay, and floats narrower than f32 are held as f32."""
    if to.is_float:
        with np.errstate(over="ignore"):  # the unbounded end in f16
            found = values.astype(to.dtype).astype(np.float32 if to.bits < 32 else to.dtype)
        return np.where(values == UNBOUNDED_HI, found.dtype.type(UNBOUNDED_HI), found)
    whole = to_integer(values, np.dtype(np.int64)) if values.dtype.kind == "f" else values
    return np.where(values == UNBOUNDED_HI, UNBOUNDED_HI, whole)


class ConvertLike(Op, since=1):
    """The values of x in the element type of `like`, converted as Convert does. Specification: ConvertLike-1."""

    widens = False

    def infer(self, x: TensorType, like: TensorType) -> TensorType:
        if dynamic not in (x.element, like.element):
            _check_strings(x.element, like.element)
        return TensorType(like.element, x.shape)

    def compute(self, x: Array, like: Array, *, context: RunContext) -> Array:
        return convert(x, context.outputs[0].element)

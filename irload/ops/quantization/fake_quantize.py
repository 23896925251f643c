"""FakeQuantize: rounds a float tensor to a number of levels, in its own type."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch
from irload.ops.elementwise import AutoBroadcast


class FakeQuantize(AutoBroadcast, since=1):
    """Cuts `x` to input_low..input_high, rounds it there to `levels` even steps, maps those to the output range.

    Halves round to even. What lies at or below the lower of the input bounds becomes output_low, what lies above the
    higher one output_high, so that equal input bounds make a step. The four bounds broadcast to the shape of `x`;
    leading axes of length 1 that `x` lacks are let pass, as old files have them. Without levels, or with a negative
    number of them, next to nothing is rounded, as in the runtime, which counts them as an unsigned number.
    """

    levels = attr.integer(default=0, rule=attr.advised(attr.at_least(2)), spec_required=True)

    @property
    def steps(self) -> int:
        """The steps between the levels: the unsigned 64 bits of levels − 1."""
        return (self.levels - 1) % 2**64

    def infer(
        self,
        x: TensorType,
        input_low: TensorType,
        input_high: TensorType,
        output_low: TensorType,
        output_high: TensorType,
    ) -> TensorType:
        if not (x.element.is_float or x.element.is_dynamic):
            raise TypeMismatch(f"x must be of a floating-point type, found {x.element}")
        names = ("input_low", "input_high", "output_low", "output_high")
        for name, bound in zip(names, (input_low, input_high, output_low, output_high), strict=True):
            if x.shape.meet(self.joined(x.shape, _trimmed(bound.shape, x.rank))) is None:
                raise ShapeMismatch(f"{name} of shape {bound.shape} does not broadcast to x of shape {x.shape}")
        return x.without_value()

    def compute(self, x: Array, input_low: Array, input_high: Array, output_low: Array, output_high: Array) -> Array:
        low, high, out_low, out_high = (
            self.aligned(bound.reshape(bound.shape[max(bound.ndim - x.ndim, 0) :]), x.ndim)
            for bound in (input_low, input_high, output_low, output_high)
        )
        steps = x.dtype.type(self.steps)
        rounded = np.rint((x - low) / (high - low) * steps) / steps * (out_high - out_low) + out_low
        below, above = x <= np.minimum(low, high), x > np.maximum(low, high)
        return np.where(below, out_low, np.where(above, out_high, rounded)).astype(x.dtype)


def _trimmed(bound: Shape, rank: int | None) -> Shape:
    """The shape without leading ones that stick out beyond `rank` axes."""
    if bound.rank is None or rank is None:
        return bound
    dims = list(bound.dims)
    while len(dims) > rank and dims[0].contains(1):
        dims.pop(0)
    return Shape(*dims)

"""FakeQuantize: rounds a float tensor to a number of levels, without changing its type."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch
from irload.ops.elementwise import AutoBroadcast


class FakeQuantize(AutoBroadcast, since=1):
    """Clamps `x` to input_low..input_high, rounds it to `levels` even steps, maps these to the output range.

    Halves round to even. Values at or below the lower of the input bounds become output_low, values above the higher
    one output_high, so that equal input bounds give a step function. The four bounds broadcast to the shape of `x`;
    leading axes of length 1 beyond its rank are accepted, as in old files. With `levels` 0 or negative, which OpenVINO
    converts to an unsigned number, hardly anything is rounded.
    """

    levels = attr.integer(default=0, rule=attr.advised(attr.at_least(2)), spec_required=True)

    @property
    def steps(self) -> int:
        """The number of steps between the levels: levels − 1 as unsigned 64 bits."""
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
            if x.shape.meet(self.joined(x.shape, bound.shape.without_leading_ones(x.rank))) is None:
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

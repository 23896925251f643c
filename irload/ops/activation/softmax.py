"""Softmax and its logarithm, along one axis."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.op import Op
from irload.core.shape import normalize_axis
from irload.core.tensor import Array, TensorType
from irload.ops.elementwise import require_float


class SoftMax(Op, since=1):
    """e^x divided by its sum along `axis`, counted from the front. Specification: SoftMax-1."""

    axis = attr.integer(default=0, rule=attr.non_negative, spec_required=True)

    def infer(self, x: TensorType) -> TensorType:
        require_float("x", x.element)
        if x.rank is not None:
            normalize_axis(self.axis, max(x.rank, 1))
        return x.untold()

    def compute(self, x: Array) -> Array:
        grown = np.exp(shifted(x, self.axis))
        return grown / grown.sum(self.axis, keepdims=True)


class SoftMax8(SoftMax, type="SoftMax", since=8):
    """SoftMax whose `axis` may be negative. Specification: SoftMax-8."""

    axis = attr.integer(default=1)


class LogSoftmax(Op, since=5):
    """The logarithm of SoftMax along `axis`. Specification: LogSoftmax-5."""

    axis = attr.integer(default=1)

    def infer(self, x: TensorType) -> TensorType:
        require_float("x", x.element)
        if x.rank is not None:
            normalize_axis(self.axis, max(x.rank, 1))
        return x.untold()

    def compute(self, x: Array) -> Array:
        low = shifted(x, self.axis)
        return low - np.log(np.exp(low).sum(self.axis, keepdims=True))


def shifted(x: Array, axis: int) -> Array:
    """X less its maximum along an axis, so that exponentials do not overflow."""
    return x - x.max(axis, keepdims=True) if x.size else x

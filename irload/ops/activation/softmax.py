"""Softmax and its logarithm, along one axis."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import element_of_dtype
from irload.core.op import Op
from irload.core.rounding import as_plugin_integers, narrow
from irload.core.shape import normalize_axis
from irload.core.tensor import Array, TensorType
from irload.ops.elementwise import prefer_float, require_numeric


class SoftMax(Op, since=1):
    """e^x divided by its sum along `axis`, which counts from the front. Specification: SoftMax-1."""

    axis = attr.integer(default=0, rule=attr.non_negative, spec_required=True)
    rounds = (0,)

    def infer(self, x: TensorType) -> TensorType:
        prefer_float("x", x.element)
        if x.rank is not None:
            normalize_axis(self.axis, x.rank, scalar_axis=True)
        return x.without_value()

    def compute(self, x: Array) -> Array:
        grown = np.exp(shifted(x, self.axis))
        return grown / grown.sum(self.axis, keepdims=True)


class SoftMax8(SoftMax, type="SoftMax", since=8):
    """SoftMax whose `axis` may be negative. Specification: SoftMax-8."""

    axis = attr.integer(default=1)


class LogSoftmax(Op, since=5):
    """The logarithm of SoftMax along `axis`. Specification: LogSoftmax-5.

    For integers, which only OpenVINO accepts, every step is rounded: x − max(x), minus the logarithm of the number
    of maxima.
    """

    axis = attr.integer(default=1)

    def infer(self, x: TensorType) -> TensorType:
        require_numeric("x", x.element)
        prefer_float("x", x.element)
        if x.rank is not None:
            normalize_axis(self.axis, x.rank, scalar_axis=True)
        return x.without_value()

    def compute(self, x: Array) -> Array:
        if x.dtype.kind in "iu":
            return self._of_integers(x)
        low = shifted(x, self.axis)
        return low - np.log(np.exp(low).sum(self.axis, keepdims=True))

    def _of_integers(self, x: Array) -> Array:
        element = element_of_dtype(x.dtype)
        held_as = element_of_dtype(as_plugin_integers(x).dtype)
        low = narrow(shifted(as_plugin_integers(x).astype(np.int64), self.axis), held_as).astype(np.int64)
        total = narrow(np.rint(np.exp(low)).astype(np.int64).sum(self.axis, keepdims=True), held_as)
        return narrow(low - np.rint(np.log(total)).astype(np.int64), element)


def shifted(x: Array, axis: int) -> Array:
    """x − max(x) along an axis, so that exponentials do not overflow."""
    return x - x.max(axis, keepdims=True) if x.size else x

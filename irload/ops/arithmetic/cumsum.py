"""Cumulative sums along an axis."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import boolean, i32, i64
from irload.core.op import Op
from irload.core.remarks import remark
from irload.core.shape import normalize_axis
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, TypeMismatch
from irload.ops.elementwise import require_numeric


class CumSum(Op, since=3):
    """Each element becomes the sum of all elements up to it along `axis` (a scalar input, default 0).

    Specification: CumSum-3. `exclusive` excludes the element itself, `reverse` sums from the end. The sum of booleans,
    which it excludes, is true if any of them is, with a remark: OpenVINO computes it. A scalar may be summed along
    axis 0, as in OpenVINO.
    """

    exclusive = attr.boolean(default=False)
    reverse = attr.boolean(default=False)

    def infer(self, data: TensorType, axis: TensorType | None = None) -> TensorType:
        if data.element == boolean:
            remark(
                "data must be of a numeric type by the specification, found boolean; sums are true if any element is"
            )
        else:
            require_numeric("data", data.element)
        if axis is not None:
            if not (axis.element in (i32, i64) or axis.element.is_dynamic):
                raise TypeMismatch(f"axis must be i32 or i64, found {axis.element}")
            if axis.ints is not None and len(axis.ints) == 1 and data.rank is not None:
                normalize_axis(axis.ints[0], data.rank, scalar_axis=True)
        return data.without_value()

    def compute(self, data: Array, axis: Array | None = None) -> Array:
        at = 0 if axis is None else int(axis.reshape(()))
        x = np.atleast_1d(data)
        if not -x.ndim <= at < x.ndim:
            raise ExecutionError(f"axis {at} is out of range for rank {data.ndim}")
        x = np.flip(x, at) if self.reverse else x
        total = np.cumsum(x, at, dtype=data.dtype)
        if self.exclusive:
            # The exclusive sum at the first element is empty.
            total = np.roll(total, 1, at)
            total[(slice(None),) * (at % x.ndim) + (slice(0, 1),)] = 0
        return (np.flip(total, at) if self.reverse else total).reshape(data.shape)

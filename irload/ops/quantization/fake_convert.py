"""FakeConvert: rounds floats to the values of an 8-bit float type, without changing their type."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core import element as et
from irload.core.element import merge
from irload.core.op import Op
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.ports import require_element

GREATEST = {"f8e4m3": 448.0, "f8e5m2": 57344.0}


class FakeConvert(Op, since=13):
    """(q(data · scale − shift) + shift) / scale, where q rounds to `destination_type`.

    Values beyond the largest number of that type are clamped to it. `scale` and `shift` (default 0) broadcast to the
    shape of `data` and have its type.
    """

    destination_type = attr.choice(*GREATEST, default="f8e4m3", spec_required=True)

    def infer(self, data: TensorType, scale: TensorType, shift: TensorType | None = None) -> TensorType:
        require_element("data", data, et.f16, et.bf16, et.f32)
        shape = data.shape
        for name, tensor in (("scale", scale), ("shift", shift)):
            if tensor is None:
                continue
            merge(data.element, tensor.element)
            shape = shape.broadcast(tensor.shape)
            if data.shape.meet(shape) is None:
                raise ShapeMismatch(f"{name} of shape {tensor.shape} does not broadcast to data of shape {data.shape}")
        if shift is not None and scale.shape.meet(shift.shape) is None:
            raise ShapeMismatch(f"scale and shift must be of one shape, found {scale.shape} and {shift.shape}")
        return TensorType(data.element, shape)

    def compute(self, data: Array, scale: Array, shift: Array | None = None) -> Array:
        moved = np.zeros((), data.dtype) if shift is None else shift
        target = et.element(self.destination_type)
        greatest = GREATEST[target.name]
        cut = np.clip(data * scale - moved, -greatest, greatest)
        return np.asarray((cut.astype(target.dtype).astype(data.dtype) + moved) / scale)

"""Identity: a copy of the input."""

from __future__ import annotations

from irload.core.op import Op
from irload.core.tensor import Array, TensorType


class Identity(Op, since=16):
    """A copy of x, of any element type. Specification: Identity-16."""

    widens = False

    def infer(self, x: TensorType) -> TensorType:
        return x.without_value()

    def compute(self, x: Array) -> Array:
        return x.copy()

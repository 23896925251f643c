"""And, or, exclusive or, and not, of booleans."""

from __future__ import annotations

import numpy as np

from irload.core.element import boolean, merge
from irload.core.op import Op
from irload.core.tensor import Array, TensorType
from irload.errors import TypeMismatch
from irload.ops.elementwise import Broadcasting


class BinaryLogical(Broadcasting):
    """Two boolean operands, a boolean output of the broadcast shape."""

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        element = merge(a.element, b.element)
        if not (element is boolean or element.is_dynamic):
            raise TypeMismatch(f"a and b must be boolean, found {element}")
        return TensorType(boolean, self.joined(a.shape, b.shape))


class LogicalAnd(BinaryLogical, since=1):
    """a and b. Specification: LogicalAnd-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a & b


class LogicalOr(BinaryLogical, since=1):
    """a or b. Specification: LogicalOr-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a | b


class LogicalXor(BinaryLogical, since=2, also_in=(1,)):
    """Exactly one of a and b. Specification: LogicalXor-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a ^ b


class Xor(BinaryLogical, since=1, missing_in=range(2, 100)):
    """The name of LogicalXor in opset1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a ^ b


class LogicalNot(Op, since=1):
    """not x. Specification: LogicalNot-1.

    Like OpenVINO, irload also accepts numbers, which the specification does not allow: 1 for zero, 0 for others.
    """

    def infer(self, x: TensorType) -> TensorType:
        return x.without_value()

    def compute(self, x: Array) -> Array:
        return np.asarray(x == 0).astype(x.dtype)

"""Parameter, Const and Result: the inputs, constants and outputs of a graph."""

from __future__ import annotations

from irload.core import attribute as attr
from irload.core.op import Op
from irload.core.shape import Shape
from irload.core.tensor import VALUE_LIMIT, Array, TensorType


class Parameter(Op, since=1):
    """An input of the model, or of a body."""

    shape = attr.shape(default=Shape())
    element_type = attr.element_type()

    folds = False

    def infer(self) -> TensorType:
        return TensorType(self.element_type, self.shape)

    def compute(self) -> Array:
        raise AssertionError("the executor feeds Parameters")


class Const(Op, since=1):
    """A constant tensor, stored in the .bin file."""

    element_type = attr.element_type()
    shape = attr.shape()
    offset = attr.integer(rule=attr.non_negative)
    size = attr.integer(rule=attr.non_negative)
    data = attr.supplied()
    """A function without arguments that returns the array."""

    def infer(self) -> TensorType:
        count = self.shape.size.size
        # Large constants are weights, on which no shape depends; inspecting a model must not read them.
        value = self.data() if count <= VALUE_LIMIT else None
        return TensorType(self.element_type, self.shape, value)

    def compute(self) -> Array:
        return self.data()


class ResultOp(Op, type="Result", since=1):
    """An output of the model, or of a body."""

    def infer(self, x: TensorType) -> TensorType:
        return x

    def compute(self, x: Array) -> Array:
        return x

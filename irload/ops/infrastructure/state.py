"""ReadValue and Assign: variables that persist between inferences."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.context import InferContext, RunContext
from irload.core.element import dynamic
from irload.core.op import Op
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, ShapeMismatch, TypeMismatch


class _Variable(Op):
    """An operation on the variable named `variable_id`, which connects ReadValue and Assign without an edge."""

    variable_id = attr.text()

    folds = False
    widens = False
    calculates = False


class ReadValue3(_Variable, type="ReadValue", since=3):
    """The value of a variable: the value assigned in the previous inference, `init_value` in the first one.

    Specification: ReadValue-3. Type and shape are as in `init_value`. Assign takes effect in the next inference, not in
    the current one.
    """

    def infer(self, init_value: TensorType, *, context: InferContext) -> TensorType:
        variable = init_value.without_value()
        context.declare_variable(self.variable_id, variable)
        return variable

    def compute(self, init_value: Array, *, context: RunContext) -> Array:
        stored = context.read_variable(self.variable_id)
        return init_value if stored is None else stored


class ReadValue6(_Variable, type="ReadValue", since=6):
    """The value of a variable: the value assigned in the previous inference, initially `init_value`, else zeros.

    Specification: ReadValue-6. `variable_type` and `variable_shape` must allow every possible `init_value`; they are
    the type and shape of the output, by default taken from `init_value`. Without `init_value` the first value is zeros
    of `variable_shape`, with dynamic axes of their minimal size.
    """

    variable_type = attr.element_type(default=dynamic, spec_required=True)
    variable_shape = attr.shape(default=Shape.unranked())

    def infer(self, init_value: TensorType | None = None, *, context: InferContext) -> TensorType:
        variable = TensorType(self.variable_type, self.variable_shape)
        if init_value is not None and variable.element is dynamic and variable.rank is None:
            # the file does not declare the variable; OpenVINO uses this type too
            variable = init_value.without_value()
        elif init_value is not None:
            if variable.element not in (dynamic, init_value.element):
                raise TypeMismatch(
                    f"variable_type {variable.element} of '{self.variable_id}' does not allow "
                    f"the initial value's {init_value.element}"
                )
            if not variable.shape.contains(init_value.shape):
                raise ShapeMismatch(
                    f"variable_shape {variable.shape} of '{self.variable_id}' does not allow "
                    f"the initial value's {init_value.shape}"
                )
        context.declare_variable(self.variable_id, variable)
        return variable

    def compute(self, init_value: Array | None = None, *, context: RunContext) -> Array:
        stored = context.read_variable(self.variable_id)
        if stored is not None:
            return stored
        if init_value is not None:
            return init_value
        if self.variable_shape.rank is None or self.variable_type is dynamic:
            raise ExecutionError(
                f"the variable '{self.variable_id}' has no initial value, and its type {self.variable_type} "
                f"and shape {self.variable_shape} do not determine the initial zeros"
            )
        return np.zeros([d.lo for d in self.variable_shape], self.variable_type.dtype)


class Assign3(_Variable, type="Assign", since=3):
    """Stores `value` as the variable's value for the next inference, and returns it.

    Specification: Assign-3. `value` must match the type and shape of the variable's ReadValue.
    """

    def infer(self, value: TensorType, *, context: InferContext) -> TensorType:
        variable = context.variable(self.variable_id)
        if variable is not None:
            if dynamic not in (variable.element, value.element) and variable.element is not value.element:
                raise TypeMismatch(
                    f"the variable '{self.variable_id}' is of type {variable.element}, "
                    f"the value to store of {value.element}"
                )
            if variable.shape.meet(value.shape) is None:
                raise ShapeMismatch(
                    f"the variable '{self.variable_id}' has shape {variable.shape}, the value to store {value.shape}"
                )
        return value.without_value()

    def compute(self, value: Array, *, context: RunContext) -> Array:
        context.write_variable(self.variable_id, value)
        return value


class Assign6(Assign3, type="Assign", since=6):
    """Assign to a variable of ReadValue-6 (Assign-6)."""

"""Steps that evaluate an expression for each element, and operations without a specific step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from irload.core.element import ElementType, element_of_dtype
from irload.core.op import Op, is_builtin, multiplies
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.plan.ir.expression import IDENTITY, Expression
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import rules
from irload.record import record


@record(frozen=False, eq=False, kw_only=True)
class ComputeStep(Step):
    """An operation without a specific step, executed by its `compute`."""

    op: Op
    types: tuple[TensorType, ...]

    @staticmethod
    def of(op: Op, inputs: Sequence[Value], out: Value, element: ElementType | None = None) -> ComputeStep:
        """Return the step of an operation with one output. `element`: its type, by default the type of its dtype."""
        kind = element_of_dtype(out.dtype) if element is None else element
        return ComputeStep(list(inputs), [out], op=op, types=(TensorType(kind, Shape(*out.shape)),))

    def check(self) -> None:
        rules.equal("the number of types", len(self.types), len(self.outputs))
        for value, tensor in zip(self.outputs, self.types, strict=True):
            rules.equal("the shape", value.shape, tensor.shape.static)
            rules.equal("the dtype", value.dtype, tensor.element.dtype)

    @property
    def calculates(self) -> bool:
        return self.op.calculates

    @property
    def multiplies(self) -> bool:
        return multiplies(self.op)

    @property
    def has_effect(self) -> bool:
        return self.op.signature.compute_context

    @property
    def is_function(self) -> bool:
        """True if the results depend on the inputs alone."""
        return is_builtin(self.op) and self.op.folds and not self.op.signature.compute_context


@record(frozen=False, eq=False)
class ExpressionStep(Step):
    """Base of steps that evaluate an expression for each element of the result.

    The first `MAIN_INPUTS` inputs are operands of the step itself; the others are operands of the expression. The field
    `EXPRESSION` contains the expression.
    """

    MAIN_INPUTS: ClassVar[int]
    EXPRESSION: ClassVar[str]

    @property
    def operands(self) -> list[Value]:
        """The inputs of the expression, without the result of the step itself."""
        return self.inputs[self.MAIN_INPUTS :]

    @property
    def elementwise_part(self) -> Expression:
        return getattr(self, self.EXPRESSION)

    def with_expression(self, inputs: list[Value], expression: Expression, **changes: Any) -> Self:
        """Return the step with other inputs, another expression, and `changes` of other fields."""
        return replace(self, inputs=inputs, **{self.EXPRESSION: expression}, **changes)


@record(frozen=False, eq=False, kw_only=True)
class ElementwiseStep(ExpressionStep):
    """An expression over operands that broadcast to the shape of the outputs; each result is an output."""

    MAIN_INPUTS = 0
    EXPRESSION = "expression"
    adapts_layout = True

    expression: Expression

    def check(self) -> None:
        rules.expression(self.expression, [], self.inputs, self.outputs)

    @property
    def multiplies(self) -> bool:
        return False

    @property
    def layout_sources(self) -> Sequence[Value]:
        return [v for v in self.inputs if v.shape == self.outputs[0].shape]


@record(frozen=False, eq=False, kw_only=True)
class WithEpilogue(ExpressionStep):
    """Base of steps with an epilogue: an expression applied to the result before it is stored.

    Operand 0 of the epilogue is the step's result; the other operands are `operands`, which broadcast to the output.
    """

    EXPRESSION = "epilogue"

    epilogue: Expression = IDENTITY

"""Pointwise expressions over tensors of any strides, which broadcast. A rotary embedding is one, with two results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.arguments import Arguments, float_word
from irload.plan.backends.llvm.axes import Axis, axes_of, by_memory, row_key, size_of
from irload.plan.backends.llvm.builder import AnyInt, Pointer, Vec
from irload.plan.backends.llvm.elements import SIZES, elements_of
from irload.plan.backends.llvm.expressions import evaluate, expression_cycles, numbers_of, without_numbers
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.blocks import BlockKernel, Row
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.sized_arrays import spread
from irload.plan.backends.llvm.tuning import LONG_EXPRESSION
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.steps import ElementwiseStep, RotaryEmbeddingStep
from irload.record import record

_ROTATION = Expression(
    6,
    (
        Instruction("multiply", (0, 2)),
        Instruction("multiply", (1, 4)),
        Instruction("subtract", (6, 7)),
        Instruction("multiply", (1, 3)),
        Instruction("multiply", (0, 5)),
        Instruction("add", (9, 10)),
    ),
    (8, 11),
)
"""(x₁, x₂, cos₁, cos₂, sin₁, sin₂) → x₁·cos₁ − x₂·sin₁, x₂·cos₂ + x₁·sin₂."""


def select_elementwise(step: ElementwiseStep, selector: Selector) -> list[Launch]:
    """The kernel of an expression with any number of results."""
    outputs, operands = ([selector.stored(v) for v in values] for values in (step.outputs, step.inputs))
    return [pointwise(step.expression, outputs, operands, selector)]


def select_rotary_embedding(step: RotaryEmbeddingStep, selector: Selector) -> list[Launch]:
    """The kernel of a rotary embedding, for tensors of any strides."""
    shape, half = step.output.shape, step.output.shape[-1] // 2
    tensors = [selector.array(step.output), *(np.broadcast_to(selector.array(v), shape) for v in step.inputs)]
    halves = [part for t in tensors for part in (t[..., :half], t[..., half:])]
    return [pointwise(_ROTATION, halves[:2], halves[2:], selector)]


def pointwise(
    expression: Expression, outputs: Sequence[Array], operands: Sequence[Array], selector: Selector
) -> Launch:
    """The kernel of an expression of these arrays, which broadcast to the shape of the outputs."""
    shape = outputs[0].shape
    tensors = [*outputs, *(spread(a, shape) for a in operands)]
    axes = by_memory(axes_of(shape, *(t.strides for t in tensors))) or [Axis(1, tuple(t.itemsize for t in tensors))]
    kernel = Pointwise(selector.target.lanes, tuple(axes), expression, elements_of(tensors))
    return selector.launch(kernel, [*outputs, *operands])


@record()
class Pointwise(BlockKernel):
    """An expression at every position of at least one axis. Pointers: results, then operands.

    `elements`: the stored type of each tensor. The code also reads the constants of arithmetic instructions.
    """

    expression: Expression
    elements: tuple[str, ...]

    @property
    def code(self) -> Pointwise:
        return replace(self, axes=(self.row,), expression=without_numbers(self.expression))

    @property
    def given_numbers(self) -> tuple[int, ...]:
        return tuple(map(float_word, numbers_of(self.expression)))

    @property
    def cycles(self) -> float:
        return size_of(self.axes) / 8 * (expression_cycles(self.expression) + len(self.elements))

    @property
    def times(self) -> int:
        return 2 if expression_cycles(self.expression) >= LONG_EXPRESSION else 4

    @property
    def row(self) -> Axis:
        return row_key(self.axes[-1], self.lanes, [SIZES[e] for e in self.elements])

    @property
    def _operands(self) -> range:
        """The indices of the operands among the tensors."""
        return range(len(self.expression.result_registers), len(self.elements))

    def read(self, arguments: Arguments) -> list[Vec]:
        return arguments.vectors(len(numbers_of(self.expression)))

    def begin(self, row: Row, given: list[Vec]) -> tuple[list[Vec], dict[int, Vec]]:
        """Read the operands that are broadcast along the row."""
        single = [k for k in self._operands if row.strides[k] == 0]
        return given, {k: read(row.f, row.addresses[k], 0, 0, element=self.elements[k]) for k in single}

    def write_vector(
        self, row: Row, given: tuple[list[Vec], dict[int, Vec]], vector: AnyInt, count: AnyInt | None
    ) -> None:
        def tensor(k: int) -> tuple[Pointer, AnyInt, AnyInt, AnyInt | None, str]:
            stride = row.strides[k]
            return row.addresses[k], vector * self.lanes * stride, stride, count, self.elements[k]

        numbers, scalars = given
        values = [scalars[k] if k in scalars else read(row.f, *tensor(k)) for k in self._operands]
        for k, result in enumerate(evaluate(self.expression, values, numbers)):
            write(row.f, result, *tensor(k))

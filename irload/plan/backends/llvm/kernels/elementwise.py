"""Expressions over whole tensors of any strides."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, by_memory
from irload.plan.backends.llvm.blocks import Blocks, unrolled
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.elements import elements_of
from irload.plan.backends.llvm.expressions import evaluate, expression_cycles
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.expression import Expression
from irload.plan.ir.steps import Elementwise
from irload.record import record

LONG = 24
"""Cycles of an expression from which two vectors a turn keep the processor busy; else it takes four."""


def select_elementwise(step: Elementwise, selector: Selector) -> list[Launch]:
    """An expression of any number of results."""
    outputs, operands = ([selector.stored(v) for v in values] for values in (step.outputs, step.inputs))
    return [pointwise(step.expression, outputs, operands, selector)]


def pointwise(
    expression: Expression, outputs: Sequence[Array], operands: Sequence[Array], selector: Selector
) -> Launch:
    """The kernel of an expression of these arrays, which broadcast to the shape of the outputs."""
    shape = outputs[0].shape
    tensors = [*outputs, *(np.broadcast_to(a, shape) for a in operands)]
    axes = by_memory([Axis(n, tuple(t.strides[k] for t in tensors)) for k, n in enumerate(shape)])
    kernel = Pointwise(selector.target.lanes, tuple(axes), expression, elements_of(tensors))
    return selector.launch(kernel, [*outputs, *operands])


@record()
class Pointwise(Kernel):
    """An expression at every position of axes. Vectors follow the last. Pointers: results, then operands.

    `elements`: how each of them is stored.
    """

    lanes: int
    axes: tuple[Axis, ...]
    expression: Expression
    elements: tuple[str, ...]

    @property
    def count(self) -> int:
        return self._blocks.count

    @property
    def cycles(self) -> float:
        each = expression_cycles(self.expression) + self._tensors
        return prod(axis.size for axis in self.axes) / 8 * each

    @property
    def _blocks(self) -> Blocks:
        return Blocks(self.axes, self.lanes, self._tensors)

    @property
    def _results(self) -> int:
        return len(self.expression.result_registers)

    @property
    def _tensors(self) -> int:
        return self._results + self.expression.operands

    def write(self, function: Function) -> None:
        f, blocks = function, self._blocks
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(self._tensors)]
        operands = range(self._results, self._tensors)
        scalars = {
            k: read(f, pointers[k], 0, 0, element=self.elements[k])
            for k in operands
            if not any(axis.strides[k] for axis in self.axes)
        }
        strides = blocks.row.strides

        def row(places: list[Value], first: Int, last: Int) -> None:
            same = dict(scalars)
            for k in operands:
                if k not in same and strides[k] == 0:
                    same[k] = read(f, places[k], 0, 0, element=self.elements[k])

            def vector(at: Int, count: int | None = None) -> None:
                position = f.multiply(at, self.lanes)

                def tensor(k: int) -> tuple[Value, Int, int, int | None, str]:
                    return places[k], f.multiply(position, strides[k]), strides[k], count, self.elements[k]

                values = [same[k] if k in same else read(f, *tensor(k)) for k in operands]
                for k, result in enumerate(evaluate(f, self.expression, values)):
                    write(f, result, *tensor(k))

            unrolled(f, first, last, 2 if expression_cycles(self.expression) >= LONG else 4, vector)
            if blocks.rest:
                blocks.at_end(f, last, lambda: vector(blocks.vectors, blocks.rest))

        blocks.walk(f, f["begin"], f["end"], pointers, row)

"""Expressions of one operand on arrays, by kernels of their own: for tests of accuracy."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm import vector_math
from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernel import Kernel, Launch, address
from irload.plan.backends.llvm.runtime import Table
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.vectors import Vector
from irload.plan.ir.expression import Expression
from irload.record import record


@record()
class Map(Kernel):
    """Results of an expression for whole vectors. Pointers: the operands, then the results."""

    expression: Expression
    lanes: int
    vectors: int

    @property
    def count(self) -> int:
        return self.vectors

    @property
    def cycles(self) -> float:
        return 0

    def write(self, function: Function) -> None:
        f, operands = function, self.expression.operands
        results = len(self.expression.result_registers)
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(operands + results)]

        def vector(index: Value, _: list[Value]) -> None:
            place = f.multiply(index, 4 * self.lanes)
            values = evaluate(f, self.expression, [f.load(p, place) for p in pointers[:operands]])
            for value, pointer in zip(values, pointers[operands:], strict=True):
                f.store(value, pointer, place)

        f.loop(f["begin"], f["end"], 1, vector)


def mapped(expression: Expression, operands: list[Array], target: Target) -> list[Array]:
    """The results of an expression of arrays of one axis, whose length is a multiple of 16."""
    results = [np.empty_like(operands[0]) for _ in expression.result_registers]
    kernel = Map(expression, target.lanes, len(operands[0]) // target.lanes)
    Table([Launch(kernel, [address(a) for a in (*operands, *results)])], target, 1, 0).run(0, 1)
    return results


@record()
class Apply(Kernel):
    """A function of vector_math for whole vectors. Pointers: its operand, its result."""

    name: str
    lanes: int
    vectors: int

    @property
    def count(self) -> int:
        return self.vectors

    @property
    def cycles(self) -> float:
        return 0

    def write(self, function: Function) -> None:
        f = function
        source, target = (f.load_pointer(f["arguments"], 8 * k) for k in range(2))

        def vector(index: Value, _: list[Value]) -> None:
            place = f.multiply(index, 4 * self.lanes)
            f.store(getattr(vector_math, self.name)(Vector(f, f.load(source, place))).value, target, place)

        f.loop(f["begin"], f["end"], 1, vector)


def applied(name: str, operand: Array, target: Target) -> Array:
    """A function of vector_math of an array of one axis, whose length is a multiple of 16."""
    result = np.empty_like(operand)
    kernel = Apply(name, target.lanes, len(operand) // target.lanes)
    Table([Launch(kernel, [address(operand), address(result)])], target, 1, 0).run(0, 1)
    return result

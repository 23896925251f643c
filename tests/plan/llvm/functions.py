"""Kernels that evaluate a single expression or function on arrays, for tests of accuracy."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm import vector_math
from irload.plan.backends.llvm.builder import Function, Vec
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernel import Kernel, Launch, address
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.expression import Expression
from irload.record import record


@record()
class Vectors(Kernel):
    """A kernel that computes results for whole vectors. Pointers: the operands, then the results."""

    lanes: int
    vectors: int

    @property
    def count(self) -> int:
        return self.vectors

    @property
    def cycles(self) -> float:
        return 0

    @property
    @abstractmethod
    def tensors(self) -> tuple[int, int]:
        """The numbers of operands and results."""

    @abstractmethod
    def results(self, f: Function, operands: list[Vec]) -> list[Vec]:
        """The results of one vector of each operand."""

    def write(self, function: Function) -> None:
        f, (operands, results) = function, self.tensors
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(operands + results)]
        for index in f.range(f["begin"], f["end"]):
            place = index * (4 * self.lanes)
            values = self.results(f, [f.load(p, place) for p in pointers[:operands]])
            for value, pointer in zip(values, pointers[operands:], strict=True):
                f.store(value, pointer, place)


@record()
class Map(Vectors):
    """Evaluates an expression."""

    expression: Expression

    @property
    def tensors(self) -> tuple[int, int]:
        return self.expression.operands, len(self.expression.result_registers)

    def results(self, f: Function, operands: list[Vec]) -> list[Vec]:
        return evaluate(self.expression, operands)


@record()
class Apply(Vectors):
    """Calls a function of vector_math."""

    name: str

    @property
    def tensors(self) -> tuple[int, int]:
        return 1, 1

    def results(self, f: Function, operands: list[Vec]) -> list[Vec]:
        return [getattr(vector_math, self.name)(operands[0])]


def mapped(expression: Expression, operands: list[Array], target: Target) -> list[Array]:
    """The results of an expression on arrays of one axis, whose length is a multiple of 16."""
    return _run(Map(target.lanes, len(operands[0]) // target.lanes, expression), operands, target)


def applied(name: str, operand: Array, target: Target) -> Array:
    """The result of a function of vector_math for an array of one axis, whose length is a multiple of 16."""
    (result,) = _run(Apply(target.lanes, len(operand) // target.lanes, name), [operand], target)
    return result


def _run(kernel: Vectors, operands: list[Array], target: Target) -> list[Array]:
    results = [np.empty_like(operands[0]) for _ in range(kernel.tensors[1])]
    launched([Launch(kernel, [address(a) for a in (*operands, *results)])], target, 1, 0).run(0, 1)
    return results

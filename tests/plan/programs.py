"""Small programs for tests: values, constants, and running them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from irload.core.tensor import Array
from irload.ops.image.taps import Taps
from irload.plan.backends.base import Options
from irload.plan.backends.numpy.backend import NumpyBackend
from irload.plan.executor import Executor
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ElementwiseStep, ResampleStep
from irload.plan.memory.layout import Layout
from irload.plan.memory.requests import MemoryRequests
from irload.plan.passes.pipeline import optimize

F32 = np.dtype(np.float32)


def value(*shape: int) -> Value:
    """A value that a step computes or the caller provides."""
    return Value(shape, F32)


def constant(array: Array) -> Value:
    """A constant."""
    return Value.of(array)


def random(*shape: int, seed: int = 0) -> Array:
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(
    steps: Sequence[Step],
    inputs: dict[Value, Array],
    outputs: Sequence[Value],
    threads: int = 1,
    *,
    passes: bool = True,
    layouts: dict[Value, Layout] | None = None,
) -> tuple[Array, ...]:
    """The outputs of a program, which runs twice with equal results. `layouts`: required layouts of values."""
    program = Program(list(steps), list(inputs), list(outputs))
    offered = [Placed(layouts)] if layouts is not None else None
    plan = Executor(optimize(program) if passes else program, Options(threads), offered)
    first = plan.run(list(inputs.values()))
    for a, b in zip(first, plan.run(list(inputs.values())), strict=True):
        np.testing.assert_array_equal(a, b)
    return first


class Placed(NumpyBackend):
    """NumPy's back end, which requests only the given layouts."""

    def __init__(self, layouts: dict[Value, Layout]) -> None:
        self._layouts = layouts

    def requests(self, program: Program, steps: Sequence[Step]) -> MemoryRequests:
        return replace(super().requests(program, steps), layouts=self._layouts)


def mapped(function: str, *operands: Value | float, numbers: tuple[float, ...] = ()) -> ElementwiseStep:
    """An Elementwise of one instruction over values and constants of one element."""
    values = [o if isinstance(o, Value) else constant(np.float32(o).reshape(1)) for o in operands]
    shape = np.broadcast_shapes(*(v.shape for v in values))
    expression = Expression(len(values), (Instruction(function, tuple(range(len(values))), numbers),))
    return ElementwiseStep(values, [value(*shape)], expression=expression)


def resampled(x: Value, matrix: Array, axis: int) -> ResampleStep:
    """A Resample whose taps are the elements of each row of a matrix that are not zero."""
    count = int(np.count_nonzero(matrix, axis=1).max())
    index = np.argsort(matrix == 0, axis=1, kind="stable")[:, :count]
    out = value(*x.shape[:axis], len(matrix), *x.shape[axis + 1 :])
    return ResampleStep([x], [out], axis=axis, taps=Taps(index, np.take_along_axis(matrix, index, 1)))


class Chain:
    """Consecutive steps of a program: `chain("add", a, 2)` is the value of a sum."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __call__(self, function: str, *operands: Value | float, numbers: tuple[float, ...] = ()) -> Value:
        return self.add(mapped(function, *operands, numbers=numbers))

    def add(self, step: Step) -> Value:
        """Append a step and return its only output."""
        self.steps.append(step)
        return step.output

    def optimized(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> list[Step]:
        """The steps after all passes."""
        return optimize(Program(list(self.steps), list(inputs), list(outputs))).steps

"""Small programs for tests: values, constants, and running them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.numpy.backend import NumpyBackend
from irload.plan.executor import Executor
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import Elementwise, Resample
from irload.plan.memory.layout import Layout
from irload.plan.memory.requests import MemoryRequests
from irload.plan.passes.pipeline import optimize

F32 = np.dtype(np.float32)


def value(*shape: int) -> Value:
    """A value that a step makes or the caller fills."""
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
    """The outputs of a program, run twice: the second time must give the same. `layouts`: these, and no others."""
    program = Program(list(steps), list(inputs), list(outputs))
    offered = [Placed(layouts)] if layouts is not None else None
    plan = Executor(optimize(program) if passes else program, Options(threads), offered)
    first = plan.run(list(inputs.values()))
    for a, b in zip(first, plan.run(list(inputs.values())), strict=True):
        np.testing.assert_array_equal(a, b)
    return first


class Placed(NumpyBackend):
    """NumPy's back end, asking for these layouts alone."""

    def __init__(self, layouts: dict[Value, Layout]) -> None:
        self._layouts = layouts

    def requests(self, program: Program, steps: Sequence[Step]) -> MemoryRequests:
        return replace(super().requests(program, steps), layouts=self._layouts)


def mapped(function: str, *operands: Value | float, numbers: tuple[float, ...] = ()) -> Elementwise:
    """An Elementwise of one instruction over values and constants of one element."""
    values = [o if isinstance(o, Value) else constant(np.float32(o).reshape(1)) for o in operands]
    shape = np.broadcast_shapes(*(v.shape for v in values))
    expression = Expression(len(values), (Instruction(function, tuple(range(len(values))), numbers),))
    return Elementwise(values, [value(*shape)], expression=expression)


def resampled(x: Value, matrix: Array, axis: int) -> Resample:
    """A Resample whose taps are the elements of each row of a matrix that are not zero."""
    count = int(np.count_nonzero(matrix, axis=1).max())
    index = np.argsort(matrix == 0, axis=1, kind="stable")[:, :count]
    out = value(*x.shape[:axis], len(matrix), *x.shape[axis + 1 :])
    return Resample([x], [out], axis=axis, index=index, weight=np.take_along_axis(matrix, index, 1))


class Chain:
    """Steps of a program, one after the other: `chain("add", a, 2)` is the value of a sum."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __call__(self, function: str, *operands: Value | float, numbers: tuple[float, ...] = ()) -> Value:
        return self.add(mapped(function, *operands, numbers=numbers))

    def add(self, step: Step) -> Value:
        """The only output of a step, which comes next."""
        self.steps.append(step)
        return step.output

    def optimized(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> list[Step]:
        """The steps that all passes leave."""
        return optimize(Program(list(self.steps), list(inputs), list(outputs))).steps

"""Small programs for tests: values, constants, and running them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.fast import FastPlan, Shared
from irload.plan.passes import optimize
from irload.plan.program import Program, Step, Value

F32 = np.dtype(np.float32)


def value(*shape: int) -> Value:
    """A value that a step makes or the caller fills."""
    return Value(shape, F32)


def constant(array: Array) -> Value:
    """A constant."""
    return Value(array.shape, array.dtype, array)


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
) -> tuple[Array, ...]:
    """The outputs of a program, run twice: the second time must give the same."""
    program = Program(list(steps), list(inputs), list(outputs))
    plan = FastPlan(optimize(program) if passes else program, threads, Shared())
    first = plan.run(list(inputs.values()))
    for a, b in zip(first, plan.run(list(inputs.values())), strict=True):
        np.testing.assert_array_equal(a, b)
    return first

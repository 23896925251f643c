"""Products in bf16 that read one value copy it once, as long as the copy is still there."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.target import Target
from irload.plan.executor import Executor
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import MatMul
from irload.plan.sanitizing import sanitizing
from tests.plan.llvm.harness import BF16
from tests.plan.programs import constant, random, run, value

pytestmark = [
    pytest.mark.usefixtures("everything_pays"),
    pytest.mark.parametrize("target", BF16, ids=lambda t: t.name),
]


def product(x: Value, weights: Value, columns: int, *, transpose: bool = False) -> MatMul:
    rows = x.shape[1 if transpose else 0]
    return MatMul([x, weights], [value(rows, columns)], transpose_a=transpose)


def weights(depth: int, columns: int, seed: int) -> Value:
    return constant(random(depth, columns, seed=seed))


def planned(steps: list[Step], inputs: list[Value], target: Target, threads: int = 2) -> Executor:
    outputs = [s.output for s in steps]
    return Executor(
        Program(steps, inputs, outputs), Options(threads, precision="bf16"), [LlvmBackend(target, bf16=True)]
    )


def copies(plan: Executor) -> int:
    """How many kernels copy data to bf16."""
    (segment,) = plan.segments
    assert isinstance(segment.executable, LlvmExecutable)
    return len(segment.executable.table.entries) - len(plan.program.steps)


def agree(plan: Executor, steps: list[Step], inputs: list[Value], given: list[Array]) -> None:
    """Twice as a whole, and step by step, each by itself."""
    wanted = run(steps, dict(zip(inputs, given, strict=True)), [s.output for s in steps], passes=False)
    for _ in range(2):
        for a, b in zip(plan.run(given), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=0.02 * np.abs(b).max())
    with sanitizing():  # which spoils temporaries before each step
        again = planned(steps, inputs, plan.segments[0].executable.table.target)  # type: ignore[attr-defined]
        for a, b in zip(again.run(given), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=0.02 * np.abs(b).max())
    plan.profile(given)


def test_one_copy_for_all(target: Target) -> None:
    x = value(10, 40)
    steps: list[Step] = [product(x, weights(40, n, n), n) for n in (33, 48, 16)]
    plan = planned(steps, [x], target)
    assert copies(plan) == 1
    agree(plan, steps, [x], [random(10, 40)])


def test_another_value_is_copied(target: Target) -> None:
    x, y = value(10, 40), value(10, 40)
    steps: list[Step] = [product(v, weights(40, 32, k), 32) for k, v in enumerate((x, y, x, x))]
    plan = planned(steps, [x, y], target)
    assert copies(plan) == 3
    agree(plan, steps, [x, y], [random(10, 40), random(10, 40, seed=1)])


def test_another_look_at_it_is_copied(target: Target) -> None:
    x = value(24, 24)
    steps: list[Step] = [product(x, weights(24, 32, k), 32, transpose=turned) for k, turned in enumerate((0, 1, 1))]
    plan = planned(steps, [x], target)
    assert copies(plan) == 2
    agree(plan, steps, [x], [random(24, 24)])


def test_what_others_have_written_over_is_copied_again(target: Target) -> None:
    """Weights that are computed are packed behind the copy, or over it where there is none."""
    x, w = value(10, 40), value(40, 32)
    y = value(10, 40)
    steps: list[Step] = [
        product(x, weights(40, 32, 1), 32),
        product(x, w, 32),  # packs behind the copy of x
        product(x, weights(40, 48, 2), 48),
        product(y, weights(40, 48, 3), 48),
        product(x, weights(40, 48, 4), 48),
    ]
    plan = planned(steps, [x, w, y], target)
    assert copies(plan) == 3 + 1
    agree(plan, steps, [x, w, y], [random(10, 40), random(40, 32, seed=5), random(10, 40, seed=6)])

"""bf16 products that read one value share one copy, which is a step of the program."""

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
from irload.plan.ir.steps import MatMulStep, RelayoutStep
from irload.plan.sanitizing import sanitizing
from tests.plan.llvm.harness import BF16
from tests.plan.programs import constant, random, run, value

pytestmark = [
    pytest.mark.usefixtures("everything_pays"),
    pytest.mark.parametrize("target", BF16, ids=lambda t: t.name),
]


def product(x: Value, weights: Value, columns: int, *, transpose: bool = False) -> MatMulStep:
    rows = x.shape[1 if transpose else 0]
    return MatMulStep([x, weights], [value(rows, columns)], transpose_a=transpose)


def weights(depth: int, columns: int, seed: int) -> Value:
    return constant(random(depth, columns, seed=seed))


def planned(steps: list[Step], inputs: list[Value], target: Target, threads: int = 2) -> Executor:
    outputs = [s.output for s in steps]
    return Executor(
        Program(steps, inputs, outputs), Options(threads, precision="bf16"), [LlvmBackend(target, bf16=True)]
    )


def copies(plan: Executor) -> int:
    """The number of steps that copy data to bf16; no product has a copy inside."""
    (segment,) = plan.segments
    assert isinstance(segment.executable, LlvmExecutable)
    relayouts = [step for step in plan.program.steps if isinstance(step, RelayoutStep)]
    assert len(segment.executable.kernels) == len(plan.program.steps)
    return len(relayouts)


def agree(plan: Executor, steps: list[Step], inputs: list[Value], arrays: list[Array]) -> None:
    """Compare the complete plan, and the same steps run separately."""
    wanted = run(steps, dict(zip(inputs, arrays, strict=True)), [s.output for s in steps], passes=False)
    for _ in range(2):
        for a, b in zip(plan.run(arrays), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=0.02 * np.abs(b).max())
    with sanitizing():  # poisons temporaries before each step
        again = planned(steps, inputs, plan.segments[0].executable.table.target)  # type: ignore[attr-defined]
        for a, b in zip(again.run(arrays), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=0.02 * np.abs(b).max())
    plan.profile(arrays)


def test_products_share_one_copy(target: Target) -> None:
    x = value(10, 40)
    steps: list[Step] = [product(x, weights(40, n, n), n) for n in (33, 48, 16)]
    plan = planned(steps, [x], target)
    assert copies(plan) == 1
    agree(plan, steps, [x], [random(10, 40)])


def test_another_value_is_copied(target: Target) -> None:
    x, y = value(10, 40), value(10, 40)
    steps: list[Step] = [product(v, weights(40, 32, k), 32) for k, v in enumerate((x, y, x, x))]
    plan = planned(steps, [x, y], target)
    assert copies(plan) == 2
    agree(plan, steps, [x, y], [random(10, 40), random(10, 40, seed=1)])


def test_copies_are_explained_and_planned(target: Target) -> None:
    x = value(10, 40)
    steps: list[Step] = [product(x, weights(40, n, n), n) for n in (33, 48)]
    plan = planned(steps, [x], target)
    copy = "Reorder" if target.tiles else "Pointwise"  # vectors read rows, tiles chunks
    assert [k.name for k in plan.kernels] == [copy, *["TileProduct" if target.tiles else "Product"] * 2]
    assert len(plan.profile([random(10, 40)])) == 3


def test_transposed_data_are_copied_inside_a_step(target: Target) -> None:
    x = value(24, 24)
    turned = (False, True, False)
    steps: list[Step] = []
    steps += [product(x, weights(24, 32, k), 32, transpose=transpose) for k, transpose in enumerate(turned)]
    plan = planned(steps, [x], target)
    assert copies(plan) == 1
    agree(plan, steps, [x], [random(24, 24)])


def test_a_copy_is_released_after_its_last_read(target: Target) -> None:
    """Steps between its readers, which copy and pack other values, do not overwrite it."""
    x, w = value(10, 40), value(40, 32)
    y = value(10, 40)
    steps: list[Step] = [
        product(x, weights(40, 32, 1), 32),
        product(x, w, 32),
        product(x, weights(40, 48, 2), 48),
        product(y, weights(40, 48, 3), 48),
        product(x, weights(40, 48, 4), 48),
    ]
    plan = planned(steps, [x, w, y], target)
    assert copies(plan) == 2
    agree(plan, steps, [x, w, y], [random(10, 40), random(40, 32, seed=5), random(10, 40, seed=6)])

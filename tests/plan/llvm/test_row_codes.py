"""Matmuls of compressed integer weights whose data are quantized to i8 in each inference, with precision="auto"."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.tensor import Array
from irload.options import Options
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.target import AVX512_VNNI, AVX_VNNI, Target, host_target
from irload.plan.executor import Executor
from irload.plan.ir.program import Program
from irload.plan.ir.steps import BroadcastStep, MatMulStep, TransposeStep
from irload.plan.sanitizing import sanitizing
from tests.harness.tiers import tiered
from tests.plan.compressed_weights import Weights
from tests.plan.exact import plan_of
from tests.plan.graphs import Net
from tests.plan.llvm.harness import TARGETS as RUNNABLE
from tests.plan.llvm.harness import TILES
from tests.plan.programs import value

_host = host_target()
TARGETS = [*RUNNABLE, *(t for t in (AVX_VNNI, AVX512_VNNI) if _host is not None and t.flags <= _host.flags)]
INTEGERS = (et.u4, et.i4, et.u8, et.i8)


def matmul(weights: Weights, *lead: int) -> MatMulStep:
    """The step that multiplies f32 [lead…, length] by the weights."""
    net = Net()
    y = net.op("MatMul", net.input(*lead, weights.length), weights.of(net), transpose_a=False, transpose_b=True)
    (step,) = (s for s in plan_of(net.model(y), net.shapes).program.steps if isinstance(s, MatMulStep))
    return step


def planned(steps: list[MatMulStep], target: Target, threads: int = 1, **options: bool) -> Executor:
    inputs = list(dict.fromkeys(step.inputs[0] for step in steps))
    backend = LlvmBackend(target, int8=True, bf16=options.pop("bf16", False))
    program = Program(list(steps), inputs, [step.output for step in steps])
    return Executor(program, Options(threads, precision="auto"), [backend])


def quantized(x: Array, group: int) -> Array:
    """The data that the codes represent, in f64."""
    groups = x.reshape(*x.shape[:-1], -1, group)
    most = np.abs(groups).max(-1, keepdims=True)
    codes = np.rint(groups * np.divide(np.float32(127), most, out=np.zeros_like(most), where=most > 0))
    return (codes.astype(np.float64) * most / 127).reshape(x.shape)


def product(x: Array, step: MatMulStep) -> Array:
    """The exact product of data with the weights of a step."""
    source = step.inputs[1].source
    assert source is not None
    return x.astype(np.float64) @ source.array.astype(np.float64).T


def check(weights: Weights, group: int, *lead: int, target: Target, threads: int = 1) -> None:
    """Compare the plan with the exact product of the quantized data."""
    step = matmul(weights, *lead)
    plan = planned([step], target, threads)
    assert [k.why.endswith(f"to i8 in groups of {group}") for k in plan.kernels] == [True, False]
    assert f"data are i8 in groups of {group}, by " in plan.kernels[1].why
    x = np.random.default_rng(1).standard_normal((*lead, weights.length)).astype(np.float32)
    expected = product(quantized(x, group), step)
    for _ in range(2):
        (output,) = plan.run([x])
        assert np.abs(output - expected).max() <= 5e-6 * np.abs(expected).max() + 1e-6


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("element", INTEGERS, ids=lambda e: e.name)
def test_elements(element: ElementType, target: Target) -> None:
    weights = Weights(element, 70, 192, 1)
    for rows in (1, 5, 40):
        check(weights, 96, rows, target=target)
        check(replace(weights, zero=True), 96, rows, target=target)
        check(replace(weights, groups=3, zero=rows > 1), 64, 1, rows, target=target, threads=2)


@pytest.mark.parametrize("seed", range(tiered(8, 200)))
def test_random_shapes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    group = 16 * int(rng.integers(2, 9))
    groups, lead = int(rng.integers(2, 5)), tuple(int(n) for n in rng.integers(1, 6, int(rng.integers(1, 3))))
    weights = Weights(
        INTEGERS[rng.integers(4)],
        int(rng.integers(1, 100)),
        group * groups,
        groups,
        bool(rng.integers(2)),
        str(rng.choice(["f16", "bf16", "f32"])),
    )
    lead = (*lead, int(rng.choice([1, 2, 8, 9, 33, 100])))
    check(weights, group, *lead, target=TARGETS[seed % len(TARGETS)], threads=1 + seed % 2)


def test_groups_that_are_too_long_are_divided() -> None:
    """Weights of 8 bits have one scale per channel, but data are quantized in shorter groups."""
    check(Weights(et.u8, 20, 1280, 1), 128, 3, target=TARGETS[0])
    check(Weights(et.i8, 20, 1040, 1), 80, 3, target=TARGETS[0])


@pytest.mark.parametrize("weights", [Weights(et.i4, 20, 48, 3), Weights(et.u8, 20, 56, 1), Weights(et.nf4, 20, 128, 1)])
def test_other_groups_and_floats_stay_in_f32(weights: Weights) -> None:
    step = matmul(weights, 3)
    plan = planned([step], TARGETS[0])
    assert [kernel.name for kernel in plan.kernels] == ["Product"]
    x = np.random.default_rng(1).standard_normal((3, weights.length)).astype(np.float32)
    expected = product(x, step)
    np.testing.assert_allclose(plan.run([x])[0], expected, rtol=0, atol=5e-6 * np.abs(expected).max())


def test_products_share_one_copy() -> None:
    first = matmul(Weights(et.u4, 33, 128, 2), 5)
    steps = [first]
    for k, element in enumerate((et.u4, et.u8, et.u4)):
        step = matmul(Weights(element, 40 + k, 128, 2), 5)
        steps.append(replace(step, inputs=[first.inputs[0], *step.inputs[1:]]))
    plan = planned(steps, TARGETS[0])
    names = [kernel.name for kernel in plan.kernels]
    assert names.count("QuantizeRows") == 2  # codes of 4 bits are multiplied in another order
    x = np.random.default_rng(1).standard_normal((5, 128)).astype(np.float32)
    with sanitizing():  # poisons temporaries before each step
        results = planned(steps, TARGETS[0]).run([x])
    for step, actual in zip(steps, results, strict=True):
        expected = product(quantized(x, 64), step)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=5e-6 * np.abs(expected).max())


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_rows_that_are_not_contiguous(target: Target) -> None:
    """The data are a transposed view, or one row that is broadcast."""
    step = matmul(Weights(et.u4, 33, 128, 2), 5, 3)
    for move in (
        TransposeStep([value(128, 3, 5)], step.inputs[:1], order=(2, 1, 0)),
        BroadcastStep([value(1, 1, 128)], step.inputs[:1]),
    ):
        (source,) = move.inputs
        program = Program([move, step], [source], [step.output])
        plan = Executor(program, Options(1, precision="auto"), [LlvmBackend(target, int8=True)])
        x = np.random.default_rng(1).standard_normal(source.shape).astype(np.float32)
        moved = np.broadcast_to(x if source.shape[0] == 1 else x.T, (5, 3, 128))
        expected = product(quantized(np.ascontiguousarray(moved), 64), step)
        np.testing.assert_allclose(plan.run([x])[0], expected, rtol=0, atol=5e-6 * np.abs(expected).max())


def test_bf16_by_tiles_is_faster() -> None:
    step = matmul(Weights(et.u4, 64, 128, 1), 64)
    assert "QuantizeRows" not in [k.name for k in planned([step], TILES, bf16=True).kernels]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_extremes(target: Target) -> None:
    """Zeros stay 0, large numbers are represented, subnormal ones become 0; NaN and infinities stay in their row."""
    step = matmul(Weights(et.i4, 20, 128, 2), 6)
    x = np.random.default_rng(1).standard_normal((6, 128)).astype(np.float32)
    x[0] = 0
    x[1] *= np.float32(1e-42)
    x[2] *= np.float32(1e30)
    x[3, 70], x[4, 3] = np.nan, np.inf
    (output,) = planned([step], target).run([x])
    expected = product(quantized(x[[2, 5]], 64), step)
    np.testing.assert_array_equal(output[:2], 0)
    largest = np.abs(expected).max(1, keepdims=True)
    np.testing.assert_allclose(output[[2, 5]] / largest, expected / largest, rtol=0, atol=1e-5)
    assert not np.isfinite(output[3:5]).any()

"""Models with variables in precision="auto": only matmuls with constant weights multiply in bf16."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

pytest.importorskip("llvmlite")

from irload.core import element as et
from irload.core.tensor import Array
from irload.options import Options
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.target import Target
from irload.plan.executor import Executor
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import MatMulStep
from tests.plan.compressed_weights import ELEMENTS, Weights
from tests.plan.exact import plan_of
from tests.plan.graphs import Net
from tests.plan.llvm.harness import BF16
from tests.plan.programs import constant, random, value

pytestmark = [
    pytest.mark.usefixtures("everything_pays"),
    pytest.mark.parametrize("target", BF16, ids=lambda t: t.name),
]


def planned(steps: list[Step], inputs: list[Value], target: Target, *, int8: bool = True) -> Executor:
    backend = LlvmBackend(target, bf16_weights=True, int8=int8)
    return Executor(Program(steps, inputs, [s.output for s in steps]), Options(1, precision="auto"), [backend])


def rounded(array: Array) -> Array:
    return array.astype(bfloat16).astype(np.float64)


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_constant_weights(rows: int, target: Target) -> None:
    """The operands are rounded to bf16, and values between the steps are not."""
    x, weights, mixed = value(rows, 48), random(48, 33), random(33, 20, seed=1)
    first = MatMulStep([x, constant(weights)], [value(rows, 33)])
    second = MatMulStep([first.output, constant(mixed)], [value(rows, 20)])
    plan = planned([first, second], [x], target)
    assert [k.name for k in plan.kernels].count("Reorder") + [k.name for k in plan.kernels].count("Pointwise") == 2
    assert all("bf16" in k.why for k in plan.kernels if "Product" in k.name)
    values = random(rows, 48, seed=2)
    outputs = plan.run([values])
    for result, data, by in ((outputs[0], values, weights), (outputs[1], outputs[0], mixed)):
        wanted = rounded(data) @ rounded(by)
        np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_computed_weights_stay_in_f32(target: Target) -> None:
    """Products of attention, whose keys are in caches."""
    a, b = value(40, 48), value(48, 32)
    plan = planned([MatMulStep([a, b], [value(40, 32)])], [a, b], target)
    assert not any("bf16" in kernel.why for kernel in plan.kernels)


@pytest.mark.parametrize("element", [et.f16, et.nf4, et.u4])
def test_compressed_weights(element: et.ElementType, target: Target) -> None:
    """Weights of 16 bits are packed as bf16; shorter codes are packed unchanged."""
    net = Net()
    weights = Weights(element, 64, 256, 0 if element is et.f16 else 2).of(net)
    y = net.op("MatMul", net.input(5, 256), weights, transpose_a=False, transpose_b=True)
    (step,) = (s for s in plan_of(net.model(y), net.shapes).program.steps if isinstance(s, MatMulStep))
    plan = planned([step], [step.inputs[0]], target)
    kept = {et.f16: "bf16", et.nf4: "stay nf4", et.u4: "stay u4, data are i8"}
    assert kept[element] in plan.kernels[-1].why
    packed = sum(segment.executable.nbytes.get("packed weights", 0) for segment in plan.segments)
    assert packed <= 64 * 256 * (2 if element is et.f16 else 0.75)


def matmul_by(weights: Weights, rows: int) -> MatMulStep:
    net = Net()
    data = net.input(rows, weights.length)
    y = net.op("MatMul", data, weights.of(net), transpose_a=False, transpose_b=weights.transposed)
    (step,) = (s for s in plan_of(net.model(y), net.shapes).program.steps if isinstance(s, MatMulStep))
    return step


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(24))
def test_narrow_weights_are_widened_to_bf16_for_many_rows(seed: int, target: Target) -> None:
    """Scales and zero points are applied in f32, then the weights are rounded."""
    rng = np.random.default_rng(seed)
    narrow = [e for e in ELEMENTS if e.bits < 16]
    element, groups = narrow[seed % len(narrow)], int(rng.integers(0, 5))
    length = int(rng.integers(1, 9)) * 8 * groups if groups > 1 else int(rng.integers(4, 100)) * 2
    length = 2432 * groups if seed % 5 == 4 and groups > 1 else length  # the sum is divided into parts
    zero = bool(rng.random() < 0.5 and groups)
    weights = Weights(element, int(rng.integers(16, 70)), length, groups, zero, transposed=bool(rng.random() < 0.5))
    step = matmul_by(weights, int(rng.integers(13, 80)))
    plan = planned([step], [step.inputs[0]], target, int8=False)
    assert f"stay {element.name}, bf16 by" in plan.kernels[-1].why
    x, source = random(*step.inputs[0].shape, seed=seed), step.inputs[1].source
    assert source is not None
    wide = rounded(source.array.astype(np.float32))
    wanted = rounded(x) @ (wide.T if weights.transposed else wide)
    (result,) = plan.run([x])
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(("rows", "length"), [(12, 64), (40, 63)])
def test_few_rows_and_odd_lengths_multiply_narrow_weights_in_f32(rows: int, length: int, target: Target) -> None:
    step = matmul_by(Weights(et.nf4, 40, length, 0), rows)
    plan = planned([step], [step.inputs[0]], target)
    assert plan.kernels[-1].why.endswith("stay nf4")

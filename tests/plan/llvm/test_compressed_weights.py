"""Matmuls of compressed weights by compiled kernels, every buffer between protected pages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.packing import unpack
from irload.options import Options
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.steps import GatherStep, MatMulStep
from tests.plan.compressed_weights import ELEMENTS, Weights
from tests.plan.exact import plan_of
from tests.plan.graphs import Net
from tests.plan.llvm.harness import TARGETS, GuardedMemory, run_step


def check(
    weights: Weights, rows: int, target: Target, threads: int = 1, *, at_end: bool = True, variables: bool = True
) -> None:
    """Compare the kernel with a product in f64 of the weights as `compute` decompresses them."""
    net = Net()
    data = net.input(*weights.lead, rows, weights.length)
    y = net.op("MatMul", data, weights.of(net), transpose_a=False, transpose_b=weights.transposed)
    (step,) = (s for s in plan_of(net.model(y), net.shapes).program.steps if isinstance(s, MatMulStep))
    x = np.random.default_rng(1).standard_normal(net.shapes[0]).astype(np.float32)
    source = step.inputs[1].source
    assert source is not None
    (output,) = run_step(step, [x], target, threads, at_end=at_end, variables=variables)
    wide = source.array.astype(np.float64)
    expected = x.astype(np.float64) @ (wide.swapaxes(-1, -2) if weights.transposed else wide)
    assert np.abs(output - expected).max() <= 5e-6 * np.abs(expected).max() + 1e-6


def packed_bytes(weights: Weights, rows: int, *, variables: bool) -> int:
    """The bytes of the packed weights of a matmul."""
    net = Net()
    y = net.op("MatMul", net.input(rows, weights.length), weights.of(net), transpose_a=False, transpose_b=True)
    (step,) = (s for s in plan_of(net.model(y), net.shapes).program.steps if isinstance(s, MatMulStep))
    memory = GuardedMemory(step, at_end=True, laid=None)
    return LlvmExecutable([step], memory, TARGETS[0], Options(1, variables=variables)).nbytes["packed weights"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
@pytest.mark.parametrize("transposed", [True, False])
def test_elements(element: ElementType, target: Target, transposed: bool) -> None:
    weights = Weights(element, 40, 96, 1, transposed=transposed)
    for rows in (1, 5, 64):
        check(weights, rows, target)
        check(replace(weights, groups=3, zero=element.kind != "float"), rows, target, 2)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_random_shapes(seed: int, at_end: bool) -> None:
    rng = np.random.default_rng(seed)
    element = ELEMENTS[rng.integers(len(ELEMENTS))]
    groups = int(rng.integers(0, 5))
    length = int(rng.integers(1, 9)) * 8 * groups if groups > 1 else int(rng.integers(1, 200))
    weights = Weights(
        element,
        int(rng.integers(1, 70)),
        length,
        groups,
        bool(rng.random() < 0.5 and groups),
        str(rng.choice(["f16", "bf16", "f32"])),
        bool(rng.random() < 0.5),
        (3,) if rng.random() < 0.2 else (),
    )
    for rows in (1, 2, 5, 64):
        check(weights, rows, TARGETS[seed % len(TARGETS)], 1 + seed % 2, at_end=at_end)


@pytest.mark.parametrize("variables", [True, False])
def test_short_floats_of_models_without_variables_become_f32(variables: bool) -> None:
    """Many rows reuse the weights, so that widening them once is faster; a few rows read half of the bytes."""
    for rows in (1, 64):
        check(Weights(et.f16, 40, 96), rows, TARGETS[0], variables=variables)
        elements, kept = 1024 * 256, variables or rows == 1
        assert packed_bytes(Weights(et.f16, 1024, 256), rows, variables=variables) == elements * (2 if kept else 4)
        assert packed_bytes(Weights(et.u8, 1024, 256, 1), rows, variables=variables) < 2 * elements


def test_long_sums_in_parts_of_groups() -> None:
    for rows in (1, 64):
        check(Weights(et.u4, 33, 4864, 38, zero=True), rows, TARGETS[0])
        check(Weights(et.i8, 33, 3000, 1), rows, TARGETS[0])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_gathers_widen_the_selected_rows(element: ElementType, target: Target) -> None:
    for groups in (0, 1, 3):
        net = Net()
        weights = Weights(element, 50, 96, groups, zero=groups > 0 and element.kind != "float")
        indices = np.array([[3, 49, 0], [-1, 17, 50]])
        y = net.op("Gather", weights.of(net), net.integers(2, 3), net.constant(0), version="opset8", batch_dims=0)
        (step,) = (s for s in plan_of(net.model(y), net.shapes).program.steps if isinstance(s, GatherStep))
        table = step.inputs[0].constant
        assert table is not None
        (output,) = run_step(step, [indices], target, 2)
        np.testing.assert_array_equal(output[indices < 50], table.astype(np.float32)[indices[indices < 50]])
        assert not output[indices == 50].any()


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("element", [e for e in ELEMENTS if e.bits <= 8], ids=lambda e: e.name)
def test_all_codes(element: ElementType, target: Target) -> None:
    """Each code has its value, also NaN, infinities, subnormal numbers and negative zero."""
    codes = np.tile(np.arange(256, dtype=np.uint8), (2, 1))
    table = unpack(codes, element, (2, 256 * 8 // element.bits))
    net = Net()
    weights = net.op("Convert", net.codes(table, element), destination_type="f32")
    y = net.op("Gather", weights, net.integers(2), net.constant(0), version="opset8", batch_dims=0)
    (step,) = (s for s in plan_of(net.model(y), net.shapes).program.steps if isinstance(s, GatherStep))
    (output,) = run_step(step, [np.array([1, 0])], target)
    np.testing.assert_array_equal(output, table.astype(np.float32))
    zeros = output == 0
    np.testing.assert_array_equal(np.signbit(output[zeros]), np.signbit(table[zeros].astype(np.float32)))

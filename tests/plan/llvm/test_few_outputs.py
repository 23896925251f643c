"""Compiled convolutions to few channels, with vectors along the sum, against the NumPy back end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from irload.core.tensor import Array
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import Value
from tests.plan.llvm.convolutions import check_step, convolution
from tests.plan.llvm.harness import TARGETS, WIDE, channels_last, guarded, kernel_names, run_step
from tests.plan.programs import run

pytest.importorskip("llvmlite")

GEOMETRIES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((7, 40), (3, 3), {"pads": ((1, 1), (1, 1))}),
    ((9, 300), (5, 5), {"pads": ((2, 2), (2, 2)), "strides": (2, 2)}),
    ((5, 30), (9, 9), {"pads": ((4, 4), (4, 4))}),
    ((6, 44), (3, 2), {"pads": ((0, 4), (3, 0)), "dilations": (2, 1), "strides": (1, 2)}),
    ((6, 6), (3, 3), {"pads": ((9, 9), (9, 9))}),
    ((8, 35), (3, 3), {}),
    ((4, 5, 20), (3, 2, 3), {"pads": ((1, 1), (0, 1), (1, 1))}),
    ((200,), (7,), {"pads": ((3, 3),)}),
    ((5, 30), (1, 2), {}),
]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("sizes", "kernel", "numbers"), GEOMETRIES)
@pytest.mark.parametrize(("depth", "outputs"), [(40, 1), (64, 3), (24, 2), (200, 4)])
def test_few_outputs(
    sizes: tuple[int, ...], kernel: tuple[int, ...], numbers: dict[str, Any], depth: int, outputs: int, target: Target
) -> None:
    rng = np.random.default_rng(1)
    step, arrays = convolution(rng, sizes, (1, outputs, depth, *kernel), batch=2, **numbers)
    assert kernel_names(step, target, laid=channels_last) == ["FewOutputs"]
    for threads, at_end in ((1, True), (1, False), (3, True)):
        check_step(step, arrays, target, threads, at_end=at_end, laid=channels_last)


@pytest.mark.parametrize(
    ("depth", "outputs", "kernel", "expected"),
    [(64, 1, 1, "FewOutputs"), (8, 1, 5, "FewOutputs"), (3, 3, 3, "Product"), (64, 16, 5, "Product")],
)
def test_sums_must_fill_vectors(depth: int, outputs: int, kernel: int, expected: str) -> None:
    step, _ = convolution(np.random.default_rng(0), (30, 30), (1, outputs, depth, kernel, kernel))
    assert kernel_names(step, WIDE, laid=channels_last)[-1] == expected


def test_windows_of_short_rows_are_contracted() -> None:
    step, _ = convolution(np.random.default_rng(0), (30, 12), (1, 1, 64, 3, 3))
    assert kernel_names(step, WIDE, laid=channels_last)[-1] != "FewOutputs"


def in_bf16(value: Value, plain: Array) -> Array:
    """Maps stored in bf16."""
    return channels_last(value, guarded(plain.shape, bfloat16) if len(plain.shape) == 4 else plain)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_maps_in_bf16(target: Target) -> None:
    """The sums are as exact as in f32, and rounded once."""
    rng = np.random.default_rng(2)
    step, arrays = convolution(rng, (9, 37), (1, 2, 24, 3, 3), pads=((1, 1), (1, 1)))
    arrays = [array.astype(bfloat16).astype(np.float32) for array in arrays]
    values = dict(zip([v for v in step.inputs if not v.is_constant], arrays, strict=True))
    (wanted,) = run([step], values, step.outputs, passes=False)
    (actual,) = run_step(step, arrays, target, laid=in_bf16)
    np.testing.assert_allclose(actual.astype(np.float32), wanted, rtol=2**-8, atol=1e-5)

"""Kernels that differ only in the amount of work share their code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.ops.image.taps import Taps
from irload.plan.backends.base import Options
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.ir.program import Step
from irload.plan.ir.steps import ConvStep, MatMulStep, PoolStep, ResampleStep, SampleStep
from tests.plan.llvm.convolutions import check_step, convolution
from tests.plan.llvm.harness import AVX2, GuardedMemory, channels_last
from tests.plan.programs import constant, value

StepInputs = tuple[Step, list[Array]]


def matmul(rows: int) -> StepInputs:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((40, 70)).astype(np.float32)
    step = MatMulStep([value(rows, 40), constant(weights)], [value(rows, 70)])
    return step, [rng.standard_normal((rows, 40)).astype(np.float32)]


def conv(batch: int, groups: int = 1, kernel: int = 3, stride: int = 1, channels: int = 32) -> StepInputs:
    rng = np.random.default_rng(0)
    weights = (groups, channels // groups, channels // groups, kernel, kernel)
    pads = [(kernel // 2, kernel // 2)] * 2
    return convolution(rng, [13, 12], weights, batch=batch, strides=(stride, stride), pads=pads)


def kernels(step_inputs: StepInputs) -> list[Kernel]:
    """The kernels of a step."""
    step, _ = step_inputs
    executable = LlvmExecutable([step], GuardedMemory(step, at_end=True, laid=channels_last), AVX2, Options())
    return [launch.kernel for launch in executable.launches]


def sampling(batch: int, channels: int) -> StepInputs:
    rng = np.random.default_rng(0)
    step = SampleStep(
        [value(batch, channels, 6, 5), value(batch, 7, 3, 2)],
        [value(batch, channels, 7, 3)],
        mode="bilinear",
        padding="zeros",
        align_corners=False,
    )
    return step, [rng.uniform(-1, 1, v.shape).astype(np.float32) for v in step.inputs]


def maps(height: int, width: int, channels: int = 48, batch: int = 1) -> dict[str, StepInputs]:
    """Steps on maps of a size."""
    rng = np.random.default_rng(0)
    near: dict[str, Any] = {"batch": batch, "pads": [(1, 1), (1, 1)]}
    x, y = (batch, channels, height, width), (batch, channels, (height + 1) // 2, (width + 1) // 2)
    half: dict[str, Any] = {"kernel": (3, 3), "strides": (2, 2), "dilations": (1, 1), "pads_begin": (1, 1)}
    index = np.arange(2 * width)[:, None] // 2
    twice = ResampleStep(
        [value(*x)], [value(*x[:3], 2 * width)], axis=3, taps=Taps(index, np.ones(index.shape, np.float32))
    )
    data = rng.standard_normal(x).astype(np.float32)
    return {
        "depthwise": convolution(rng, (height, width), (channels, 1, 1, 3, 3), **near),
        "strided depthwise": convolution(rng, (height, width), (channels, 1, 1, 5, 5), strides=(2, 2), **near),
        "Winograd": convolution(rng, (height, width), (1, 32, 32, 3, 3), **near),
        "maximum": (PoolStep([value(*x)], [value(*y)], kind="max", divisor="real", **half), [data]),
        "mean": (PoolStep([value(*x)], [value(*y)], kind="mean", divisor="real", **half), [data]),
        "resampling": (twice, [data]),
    }


@pytest.mark.parametrize("name", maps(8, 8))
@pytest.mark.parametrize(
    ("first", "second"),
    [((16, 20), (30, 34)), ((22, 40), (40, 22)), ((11, 13), (25, 61)), ((16, 20, 48, 3), (24, 36, 48, 1))],
)
def test_sizes_of_maps_share_code(name: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    one, other = (maps(*size)[name] for size in (first, second))
    (a,), (b,) = kernels(one), kernels(other)
    assert a != b
    assert a.code == b.code
    for step, arrays in (one, other):
        check_step(step, arrays, AVX2, 2, error=1e-4, laid=channels_last)


def test_resampling_of_any_number_of_axes_shares_code() -> None:
    index = np.arange(20)[:, None] // 2
    codes: list[StepInputs] = []
    for shape in ((1, 3, 10, 16), (2, 3, 10, 16), (1, 1, 10, 16)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        outputs = [value(*shape[:2], 20, 16)]
        step = ResampleStep([value(*shape)], outputs, axis=2, taps=Taps(index, np.ones(index.shape, np.float32)))
        codes.append((step, [x]))
    (a,), (b,), (c,) = (kernels(each) for each in codes)
    assert a.code == b.code == c.code


@pytest.mark.parametrize("name", ["depthwise", "strided depthwise", "maximum", "mean"])
def test_channels_share_code(name: str) -> None:
    results = [maps(16, 20, channels)[name] for channels in (67, 99, 131, 48, 96)]
    codes = [kernels(each)[0].code for each in results]
    assert codes[0] == codes[1] == codes[2] != codes[3] == codes[4]
    for step, arrays in results:
        check_step(step, arrays, AVX2, 2, laid=channels_last)


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (matmul, [(60, 90), (59, 95)]),
        (lambda n: conv(n, kernel=1), [(3, 4)]),
        (lambda n: conv(n, stride=2), [(3, 4)]),
        (lambda n: conv(n, groups=32), [(2, 5)]),
        (lambda n: conv(n, channels=64), [(6, 12)]),
        (lambda n: sampling(n, 2), [(3, 4)]),
        (lambda n: sampling(n, 9), [(3, 4)]),
    ],
    ids=["matmul", "1x1", "strided", "depthwise", "winograd", "sampling", "sampling by channels"],
)
def test_sizes_share_code(make: Callable[[int], StepInputs], sizes: list[tuple[int, int]]) -> None:
    for a, b in sizes:
        one, other = (kernels(make(n)) for n in (a, b))
        assert one != other
        assert [k.code for k in one] == [k.code for k in other]
        for n in (a, b):
            step, arrays = make(n)
            check_step(
                step,
                arrays,
                AVX2,
                2,
                error=1e-4,
                laid=channels_last if isinstance(step, ConvStep | SampleStep) else None,
            )

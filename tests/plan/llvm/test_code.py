"""Kernels that differ only in how much there is to do share their code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.llvm import executable
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.runtime import Table
from irload.plan.ir.program import Step
from irload.plan.ir.steps import Conv, MatMul, Sample
from tests.plan.llvm.convolutions import check_step, convolution
from tests.plan.llvm.harness import AVX2, GuardedMemory, channels_last
from tests.plan.programs import constant, value

Made = tuple[Step, list[Array]]


def matmul(rows: int) -> Made:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((40, 70)).astype(np.float32)
    step = MatMul([value(rows, 40), constant(weights)], [value(rows, 70)])
    return step, [rng.standard_normal((rows, 40)).astype(np.float32)]


def conv(batch: int, groups: int = 1, kernel: int = 3, stride: int = 1, channels: int = 32) -> Made:
    rng = np.random.default_rng(0)
    weights = (groups, channels // groups, channels // groups, kernel, kernel)
    pads = [(kernel // 2, kernel // 2)] * 2
    return convolution(rng, [13, 12], weights, batch=batch, strides=(stride, stride), pads=pads)


def kernels(made: Made, monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """The kernels that a step is given."""
    step, _ = made
    found: list[Kernel] = []

    def watched(launches: Sequence[Launch], *args: Any) -> Table:
        found.extend(launch.kernel for launch in launches)
        return launched(launches, *args)

    with monkeypatch.context() as patch:
        patch.setattr(executable, "launched", watched)
        LlvmExecutable([step], GuardedMemory(step, at_end=True, laid=channels_last), AVX2, Options())
    return found


def sampling(batch: int, channels: int) -> Made:
    rng = np.random.default_rng(0)
    step = Sample(
        [value(batch, channels, 6, 5), value(batch, 7, 3, 2)],
        [value(batch, channels, 7, 3)],
        mode="bilinear",
        padding="zeros",
        align_corners=False,
    )
    return step, [rng.uniform(-1, 1, v.shape).astype(np.float32) for v in step.inputs]


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
def test_sizes_share_code(
    make: Callable[[int], Made], sizes: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for a, b in sizes:
        one, other = (kernels(make(n), monkeypatch) for n in (a, b))
        assert one != other
        assert [k.code for k in one] == [k.code for k in other]
        for n in (a, b):
            step, arrays = make(n)
            check_step(
                step, arrays, AVX2, 2, error=1e-4, laid=channels_last if isinstance(step, Conv | Sample) else None
            )

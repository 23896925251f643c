"""Compiled transposed convolutions against the NumPy back end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from irload.plan.backends.llvm.kernels.conv_transpose import phases
from irload.plan.backends.llvm.selection import TABLE
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.steps import ConvTransposeStep
from tests.plan.llvm.convolutions import EPILOGUE, check_step
from tests.plan.llvm.harness import TARGETS, channels_last
from tests.plan.programs import constant, random, value

pytest.importorskip("llvmlite")

GEOMETRIES = [
    ((5, 6), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0)),
    ((7, 4), (4, 4), (2, 2), (1, 1), (1, 1), (-1, -1)),
    ((4, 5), (3, 3), (2, 2), (1, 1), (1, 1), (0, 1)),
    ((12, 12), (3, 3), (1, 1), (1, 1), (1, 1), (-1, -1)),
    ((9,), (16,), (8,), (1,), (4,), (-4,)),
    ((5, 6), (2, 3), (3, 1), (1, 2), (0, 3), (2, 0)),
    ((4, 3), (3, 3), (4, 6), (3, 4), (2, 0), (1, 5)),
    ((3, 4, 2), (2, 3, 2), (2, 2, 1), (1, 1, 1), (0, 1, 0), (0, 0, 0)),
]


@pytest.mark.one_in(12)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("sizes", "kernel", "strides", "dilations", "begin", "more"), GEOMETRIES)
@pytest.mark.parametrize(("groups", "depth", "channels"), [(1, 5, 20), (2, 3, 4), (17, 1, 1)])
def test_transposed(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    begin: tuple[int, ...],
    more: tuple[int, ...],
    groups: int,
    depth: int,
    channels: int,
    target: Target,
) -> None:
    x = random(2, groups * depth, *sizes)
    axes = zip(sizes, kernel, strides, dilations, begin, more, strict=True)
    out = [(n - 1) * s + (k - 1) * d + 1 - b + e for n, k, s, d, b, e in axes]
    weights = constant(random(groups, depth, channels, *kernel, seed=1))
    step = ConvTransposeStep(
        [value(*x.shape), weights],
        [value(2, groups * channels, *out)],
        strides=strides,
        dilations=dilations,
        begin=begin,
    )
    bias = constant(random(1, groups * channels, *(1,) * len(sizes), seed=2))
    other = random(*step.output.shape, seed=3)
    fused = replace(step, inputs=[*step.inputs, bias, value(*other.shape)], epilogue=EPILOGUE)
    for threads, at_end, laid in ((1, True, channels_last), (3, False, channels_last), (1, True, None)):
        check_step(step, [x], target, threads, at_end=at_end, laid=laid)
        check_step(fused, [x, other], target, threads, at_end=at_end, laid=laid)


def test_every_pair_of_element_and_tap_is_in_one_phase() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        size, kernel, stride, dilation, begin = (int(n) for n in rng.integers(1, 8, 5))
        count = int(rng.integers(1, size * stride + kernel * dilation))
        counts: dict[tuple[int, int], int] = {}
        for phase in phases(count, size, kernel, stride, dilation, begin):
            for q, o in enumerate(range(count)[phase.outputs]):
                for t, tap in enumerate(phase.taps):
                    i = q + t * phase.window.dilation - phase.window.begin
                    if 0 <= i < phase.window.size:
                        assert (i, tap) not in counts
                        counts[i, tap] = o
        pairs = {(i, k): i * stride + k * dilation - begin for i in range(size) for k in range(kernel)}
        assert counts == {pair: o for pair, o in pairs.items() if 0 <= o < count}


@pytest.mark.parametrize(
    ("stride", "dilation", "supported"), [(8, 1, True), (9, 1, False), (1, 2, True), (1, 1 << 40, False)]
)
def test_unsupported_strides_are_left_to_numpy(stride: int, dilation: int, supported: bool) -> None:
    size = 3 * stride
    step = ConvTransposeStep(
        [value(1, 2, 3, 3), constant(random(1, 2, 2, 2, 2))],
        [value(1, 2, size, size)],
        strides=(stride, stride),
        dilations=(dilation, 1),
        begin=(0, 0),
    )
    assert TABLE.supports(step) == supported

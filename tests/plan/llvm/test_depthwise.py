"""Compiled depthwise convolutions against the NumPy back end."""

from __future__ import annotations

import numpy as np
import pytest

from irload.plan.backends.llvm.target import Target
from tests.plan.llvm.convolutions import check_step, convolution
from tests.plan.llvm.harness import TARGETS, channels_last

pytest.importorskip("llvmlite")

GEOMETRIES = [
    ((7, 7), (3, 3), {"pads": ((1, 1), (1, 1))}),
    ((14, 31), (3, 3), {"pads": ((1, 1), (1, 1)), "strides": (2, 2)}),
    ((9, 20), (5, 5), {"pads": ((2, 2), (2, 2))}),
    ((5, 23), (7, 7), {"pads": ((3, 3), (3, 3))}),
    ((40,), (31,), {"pads": ((15, 15),)}),
    ((6, 6), (3, 3), {"pads": ((9, 9), (9, 9))}),
    ((9, 12), (3, 2), {"pads": ((0, 4), (3, 0)), "dilations": (2, 3), "strides": (1, 2)}),
    ((4, 5, 6), (3, 2, 3), {"pads": ((1, 1), (0, 1), (1, 1))}),
    ((5, 6), (1, 1), {}),
]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("sizes", "kernel", "numbers"), GEOMETRIES)
@pytest.mark.parametrize("channels", [2, 16, 45])
def test_depthwise(
    sizes: tuple[int, ...], kernel: tuple[int, ...], numbers: dict[str, tuple[int, ...]], channels: int, target: Target
) -> None:
    rng = np.random.default_rng(1)
    step, arrays = convolution(rng, sizes, (channels, 1, 1, *kernel), batch=2, **numbers)  # pyright: ignore
    for threads, at_end in ((1, False), (1, True), (3, True)):
        check_step(step, arrays, target, threads, at_end=at_end, laid=channels_last)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("kernel", "stride", "pads"), [(3, 1, (1, 1)), (5, 2, (2, 1)), (2, 1, (0, 0)), (9, 1, (8, 0))])
def test_rows_of_any_length(kernel: int, stride: int, pads: tuple[int, int], target: Target) -> None:
    rng = np.random.default_rng(3)
    for width in range(max(kernel - sum(pads), 1), 60):
        step, arrays = convolution(rng, (width,), (19, 1, 1, kernel), pads=(pads,), strides=(stride,))
        check_step(step, arrays, target, at_end=bool(width % 2), laid=channels_last)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_threads_share_channels_of_small_maps(target: Target) -> None:
    rng = np.random.default_rng(2)
    for channels in (300, 320):
        step, arrays = convolution(rng, (7, 7), (channels, 1, 1, 3, 3), pads=((1, 1), (1, 1)))
        check_step(step, arrays, target, 2, laid=channels_last)

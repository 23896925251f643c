"""Products by compiled kernels: convolutions and matmuls of random shapes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.ir.steps import ConvStep
from tests.plan.llvm.convolutions import check_step, convolution
from tests.plan.llvm.harness import TARGETS, channels_last
from tests.plan.llvm.matmuls import random_matmul


def random_convolution(rng: np.random.Generator) -> tuple[ConvStep, list[Array]]:
    """A convolution of one to three dimensions and its data."""
    dimensions = int(rng.choice([1, 2, 2, 2, 3]))
    groups = int(rng.choice([1, 1, 1, 2, 3]))
    depth, channels = (int(n) for n in rng.integers(1, 20, 2))
    if groups > 1 and rng.random() < 0.5:
        depth = channels = int(rng.choice([1, 2, 4, 8]))
    batch = int(rng.choice([1, 1, 2, 3]))
    kernel = [int(rng.choice([1, 1, 2, 3, 5])) for _ in range(dimensions)]
    strides = [int(rng.choice([1, 1, 2, 3])) for _ in range(dimensions)]
    dilations = [int(rng.choice([1, 1, 2])) for _ in range(dimensions)]
    pads = [
        (int(rng.integers(0, k * d + 1)), int(rng.integers(0, k * d + 1)))
        for k, d in zip(kernel, dilations, strict=True)
    ]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [int(max(span - sum(p), 1) + rng.integers(0, 18)) for span, p in zip(spans, pads, strict=True)]
    weights = (groups, channels, depth, *kernel)
    return convolution(rng, sizes, weights, batch=batch, strides=strides, dilations=dilations, pads=pads)


@pytest.mark.parametrize("seed", range(40))
def test_random_convolutions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = random_convolution(rng)
    for target in TARGETS:
        laid = channels_last if rng.integers(3) else None
        check_step(step, arrays, target, int(rng.integers(1, 4)), at_end=bool(rng.integers(2)), laid=laid)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [7, 18, 36])
@pytest.mark.parametrize("sizes", [(65,), (20, 65), (40, 41)])
def test_taps_in_the_padding_for_whole_tiles(sizes: tuple[int, ...], dilation: int, stride: int) -> None:
    axes, rng = len(sizes), np.random.default_rng(dilation)
    numbers = {"strides": (stride,) * axes, "dilations": (dilation,) * axes}
    step, arrays = convolution(rng, sizes, (1, 20, 24) + (3,) * axes, pads=((dilation,) * 2,) * axes, **numbers)
    for target in TARGETS:
        check_step(step, arrays, target, 2, laid=channels_last)


@pytest.mark.parametrize("seed", range(40))
def test_random_matmuls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = random_matmul(rng, [1, 2, 5, 7, 16, 33, 64, 130])
    for target in TARGETS:
        check_step(step, arrays, target, int(rng.integers(1, 4)), at_end=bool(rng.integers(2)))

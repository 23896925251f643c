"""Winograd's algorithm against the direct convolution."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernels.winograd_transforms import A, B, winograd_weights
from irload.plan.backends.llvm.target import Target
from tests.plan.llvm.convolutions import convolution
from tests.plan.llvm.harness import TARGETS, channels_last, kernel_names, run_step

pytest.importorskip("llvmlite")

GEOMETRIES = [
    ((14, 14), 32, 32, ((1, 1), (1, 1))),
    ((12, 13), 35, 50, ((0, 0), (0, 0))),
    ((10, 11), 64, 33, ((2, 1), (0, 4))),
    ((25, 17), 32, 70, ((1, 1), (1, 1))),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("sizes", "depth", "channels", "pads"), GEOMETRIES)
def test_winograd(
    sizes: tuple[int, ...],
    depth: int,
    channels: int,
    pads: tuple[tuple[int, int], ...],
    target: Target,
) -> None:
    rng = np.random.default_rng(0)
    step, arrays = convolution(rng, sizes, (1, channels, depth, 3, 3), batch=2, pads=pads)
    assert kernel_names(step, target, laid=channels_last) == ["Winograd"]
    assert kernel_names(step, target, precise=True, laid=channels_last) != ["Winograd"]
    (direct,) = run_step(step, arrays, target, precise=True, laid=channels_last)
    for threads, at_end in ((1, True), (1, False), (3, True)):
        (output,) = run_step(step, arrays, target, threads, at_end=at_end, laid=channels_last)
        assert np.abs(output - direct).max() < 3e-5 * direct.std()


def matrix() -> Array:
    """G of G·w·Gᵀ: the Lagrange polynomials' values at 0, ±A, ±B and ∞."""
    rows: list[list[float]] = []
    for k, x in enumerate(points := [0, A, -A, B, -B]):
        scale = prod(x - other for n, other in enumerate(points) if n != k)
        rows.append([1 / scale, x / scale, x * x / scale])
    return np.array([*rows, [0, 0, 1]])


def reference(weights: Array, width: int) -> Array:
    """[36, panels, depth, width], calculated in f64 by NumPy: columns past the end repeat the last one."""
    channels, depth = weights.shape[:2]
    whole = weights[np.minimum(np.arange(-(-channels // width) * width), channels - 1)].astype(np.float64)
    output = np.einsum("it,octu,ju->ijoc", matrix(), whole, matrix())
    return output.reshape(36, -1, width, depth).swapaxes(2, 3).astype(np.float32)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("channels", "depth", "panel", "threads"), [(70, 16, 1, 1), (32, 35, 2, 2), (100, 64, 3, 3)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_weights_are_transformed(
    channels: int, depth: int, panel: int, threads: int, dtype: type[np.floating[Any]], target: Target
) -> None:
    weights = np.random.default_rng(0).standard_normal((channels, depth, 3, 3)).astype(dtype)
    wanted = reference(weights, panel * target.lanes)
    packed = winograd_weights(weights, target, panel, threads)
    assert packed.shape == wanted.shape
    np.testing.assert_allclose(packed, wanted, rtol=2e-7, atol=1e-14)
    assert (packed == wanted).mean() > 0.999  # all except ties


def test_flipped_weights_are_transformed() -> None:
    weights = np.random.default_rng(0).standard_normal((40, 20, 3, 3)).astype(np.float32)[..., ::-1, ::-1]
    wanted = reference(weights, TARGETS[0].lanes)
    np.testing.assert_allclose(winograd_weights(weights, TARGETS[0], 1, 1), wanted, rtol=2e-7, atol=1e-14)

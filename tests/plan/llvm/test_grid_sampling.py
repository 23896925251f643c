"""Compiled GridSample against `compute`, bit for bit: all modes, points far outside the image, and NaN."""

from __future__ import annotations

import mmap
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import irload
from irload.core.tensor import Array
from irload.ops.image.grid_sample import GridSample
from irload.plan.backends.llvm import available
from irload.plan.backends.llvm.kernels.grid_points import LONGEST_SIDE
from irload.plan.backends.llvm.selection import TABLE
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import Value
from irload.plan.ir.steps import SampleStep
from tests.plan.graphs import Net
from tests.plan.llvm.harness import TARGETS, channels_last, run_step
from tests.plan.llvm.strides import strided
from tests.plan.programs import value

MODES = ("nearest", "bilinear", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
Laid = Callable[[Value, Array], Array]
F = np.float32
ODD = np.array(
    [
        0,
        -0.0,
        1,
        -1,
        1e-40,
        12345.67,
        2**24 + 2,
        2**31,
        -(2**31),
        1e9,
        -1e9,
        1e15,
        -1e20,
        3e38,
        np.inf,
        -np.inf,
        np.nan,
    ],
    F,
)


def sample(x: tuple[int, ...], grid: tuple[int, ...], mode: str, padding: str, align_corners: bool) -> SampleStep:
    out = value(*x[:2], *grid[1:3])
    return SampleStep([value(*x), value(*grid)], [out], mode=mode, padding=padding, align_corners=align_corners)


def plain(step: SampleStep, x: Array, grid: Array) -> Array:
    op = GridSample(mode=step.mode, padding_mode=step.padding, align_corners=step.align_corners)
    with np.errstate(all="ignore"):
        return op.compute(x, grid)


def points(rng: np.random.Generator, shape: tuple[int, ...], kind: int) -> Array:
    """Return coordinates inside and outside the image, on and between pixels. Some are NaN or infinite."""
    grid = rng.uniform(-2.5, 2.5, shape).astype(F)
    if kind == 1:
        return np.round(grid * 8) / 8
    if kind == 2:
        odd = rng.random(shape) < 0.3
        grid[odd] = rng.choice(ODD, int(odd.sum()))
    return grid


@pytest.mark.one_in(5)
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(8))
def test_random_grids(seed: int, mode: str, padding: str, aligned: bool) -> None:
    rng = np.random.default_rng([seed, MODES.index(mode), PADDINGS.index(padding), aligned])
    n, c = (int(rng.choice(sizes)) for sizes in ([1, 2, 3, 40], [1, 1, 2, 5]))
    x = rng.standard_normal((n, c, *(int(k) for k in rng.choice([1, 2, 3, 5, 16, 20], 2)))).astype(F)
    if seed % 4 == 0:
        x.flat[rng.integers(x.size, size=2)] = np.inf, np.nan
    grid = points(rng, (n, *(int(k) for k in rng.choice([1, 2, 3, 7, 8, 13, 40], 2)), 2), seed % 3)
    step = sample(x.shape, grid.shape, mode, padding, aligned)
    laid = [None, None, channels_last, strided(rng)][int(rng.integers(4))]
    target, threads = TARGETS[seed % len(TARGETS)], int(rng.integers(1, 4))
    (output,) = run_step(step, [x, grid], target, threads, at_end=bool(rng.integers(2)), laid=laid)
    np.testing.assert_array_equal(output, plain(step, x, grid))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("shape", [(320, 7, 7, 2), (33, 1, 1, 2), (50, 1, 3, 2), (2, 4, 4, 2), (3, 8, 6, 2)])
def test_points_of_several_images_in_one_vector(shape: tuple[int, ...], target: Target) -> None:
    rng = np.random.default_rng(3)
    x, grid = rng.standard_normal((shape[0], 1, 3, 5)).astype(F), points(rng, shape, 0)
    step = sample(x.shape, shape, "bilinear", "zeros", True)
    for threads, laid in ((1, None), (2, strided(rng))):
        (output,) = run_step(step, [x, grid], target, threads, laid=laid)
        np.testing.assert_array_equal(output, plain(step, x, grid))


def channels_of_images(value: Value, array: Array) -> Array:
    """Channels are contiguous in the images but not in the output, as in attention over maps."""
    return channels_last(value, array) if value.shape[2:] == (5, 6) else array


@pytest.mark.one_in(3)
@pytest.mark.parametrize("laid", [channels_last, channels_of_images])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("channels", [8, 16, 35])
def test_channels_side_by_side(channels: int, mode: str, padding: str, laid: Laid) -> None:
    rng = np.random.default_rng([channels, MODES.index(mode), PADDINGS.index(padding)])
    x = rng.standard_normal((2, channels, 5, 6)).astype(F)
    x.flat[rng.integers(x.size, size=3)] = np.inf, np.nan, -np.inf
    for seed, target in enumerate(TARGETS):
        grid = points(rng, (2, *((3, 7), (4, 8), (1, 1))[seed], 2), 2 * (seed % 2))
        step = sample(x.shape, grid.shape, mode, padding, bool(seed % 2))
        (output,) = run_step(step, [x, grid], target, 1 + seed, at_end=bool(seed % 2), laid=laid)
        np.testing.assert_array_equal(output, plain(step, x, grid))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize(("images", "channels"), [(1, 1), (9, 1), (1, 16)])
def test_pixels_with_large_strides(images: int, channels: int, target: Target) -> None:
    """Rows or images are more than 2³¹ elements apart; only a few pages of the memory are touched."""
    rng = np.random.default_rng(4)
    x, grid = rng.standard_normal((images, channels, 2, 3)).astype(F), points(rng, (images, 1, 5, 2), 0)
    step = sample(x.shape, grid.shape, "bilinear", "border", False)
    apart, pixel = (1 << 33) + 64, 4 * channels
    strides = (apart >> 3, 4, 3 * pixel, pixel) if images > 1 else (0, 4, apart, pixel)
    nbytes = (images - 1) * strides[0] + strides[2] + 4096
    reserved = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE

    def far(value: Value, array: Array) -> Array:
        return np.ndarray(array.shape, F, reserved, 0, strides) if value is step.inputs[0] else array

    (output,) = run_step(step, [x, grid], target, laid=far)
    np.testing.assert_array_equal(output, plain(step, x, grid))


def test_sides_beyond_f32_integers_are_left_to_numpy() -> None:
    assert TABLE.supports(sample((1, 1, 1, LONGEST_SIDE), (1, 1, 1, 2), "nearest", "border", False))
    assert not TABLE.supports(sample((1, 1, LONGEST_SIDE + 1, 1), (1, 1, 1, 2), "nearest", "border", False))


def test_the_longest_side_is_reflected_exactly() -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((1, 1, 1, LONGEST_SIDE)).astype(F)
    at = np.concatenate([rng.uniform(-1e5, 1e5, 300), ODD]).astype(F)
    grid = np.stack([at, np.zeros_like(at)], -1)[None, None]
    step = sample(x.shape, grid.shape, "nearest", "reflection", False)
    (output,) = run_step(step, [x, grid])
    np.testing.assert_array_equal(output, plain(step, x, grid))


@pytest.mark.parametrize("channels", [3, 20])
def test_a_model_runs_the_kernel(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(available, "host_target", lambda: TARGETS[0])
    net = Net()
    x, grid = net.conv(net.input(1, 3, 9, 8), 3, channels), net.input(1, 6, 7, 2)
    model = net.model(net.op("ReLU", net.op("GridSample", x, grid, version="opset9", mode="bilinear")))
    rng = np.random.default_rng(6)
    inputs = [rng.standard_normal((1, 3, 9, 8)).astype(F), points(rng, (1, 6, 7, 2), 0)]
    compiled = irload.compile_model(model, jit=True)
    wanted = irload.compile_model(model, optimize=False)(inputs)[0]
    np.testing.assert_allclose(compiled(inputs)[0], wanted, rtol=1e-5, atol=1e-6)
    assert "GridSampling" in {step.kernel for step in compiled.profile(inputs)}

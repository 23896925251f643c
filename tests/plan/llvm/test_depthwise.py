"""Compiled depthwise convolutions against the NumPy back end."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.plan.backends.llvm import available
from irload.plan.backends.llvm.target import AVX2, Target
from tests.harness.tiers import tiered
from tests.plan.graphs import PAIRS, Net
from tests.plan.llvm.convolutions import check_step, convolution
from tests.plan.llvm.harness import DOTS, TARGETS, TILES, WIDE, channels_last

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
    step, arrays = convolution(rng, sizes, (channels, 1, 1, *kernel), batch=2, **numbers)
    for threads, at_end in ((1, False), (1, True), (3, True)):
        check_step(step, arrays, target, threads, at_end=at_end, laid=channels_last)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("sizes", "kernel", "numbers"), GEOMETRIES)
@pytest.mark.parametrize(("groups", "group"), [(1, 2), (9, 2), (8, 4), (5, 4), (3, 8), (4, 8), (2, 16), (5, 3)])
def test_small_groups(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    numbers: dict[str, tuple[int, ...]],
    groups: int,
    group: int,
    target: Target,
) -> None:
    rng = np.random.default_rng(4)
    step, arrays = convolution(rng, sizes, (groups, group, group, *kernel), batch=2, **numbers)
    for threads, at_end in ((1, True), (3, False)):
        check_step(step, arrays, target, threads, at_end=at_end, laid=channels_last)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("target", "precision", "largest"), [(AVX2, "f32", 4), (WIDE, "f32", 8), (DOTS, "bf16", 8), (TILES, "bf16", 1)]
)
def test_groups_that_fill_half_of_a_vector(
    target: Target, precision: str, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(available, "host_target", lambda: target)
    for group in tiered((1, 4, 8), (1, 2, 3, 4, 8, 16)):
        net, channels = Net(), 48
        x = net.conv(net.input(1, 3, 12, 12), 3, channels)
        weights = net.weights(channels // group, group, group, 3, 3)
        model = net.model(net.op("ReLU", net.op("GroupConvolution", x, weights, **PAIRS)))
        compiled = irload.compile_model(model, 1, jit=True, precision=precision)
        x = np.random.default_rng(group).standard_normal((1, 3, 12, 12)).astype(np.float32)
        kernels = [step.kernel for step in compiled.profile(x, 1)]
        assert kernels.count("Depthwise") == (group <= largest and group != 3), group
        plain = irload.compile_model(model, optimize=False)(x)[0]
        error = 1e-5 if precision == "f32" else 0.03
        np.testing.assert_allclose(compiled(x)[0], plain, rtol=0, atol=error * plain.max())


def test_a_single_group_is_a_contraction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(available, "host_target", lambda: WIDE)
    for channels in (2, 8):
        net = Net()
        x = net.conv(net.input(1, 20, 12, 12), 20, channels)
        compiled = irload.compile_model(net.model(net.conv(x, channels, channels, 3)), 1, jit=True)
        kernels = [step.kernel for step in compiled.profile(np.ones((1, 20, 12, 12), np.float32), 1)]
        assert "Depthwise" not in kernels


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("kernel", "stride", "pads"), [(3, 1, (1, 1)), (5, 2, (2, 1)), (2, 1, (0, 0)), (9, 1, (8, 0)), (41, 1, (20, 20))]
)
def test_rows_of_any_length(kernel: int, stride: int, pads: tuple[int, int], target: Target) -> None:
    rng = np.random.default_rng(3)
    for width in range(max(kernel - sum(pads), 1), 60):
        step, arrays = convolution(rng, (width,), (19, 1, 1, kernel), pads=(pads,), strides=(stride,))
        check_step(step, arrays, target, at_end=bool(width % 2), laid=channels_last)


@pytest.mark.parametrize(
    ("rows", "kernel", "numbers"),
    [
        (1, 66, {"pads": ((0, 0), (33, 30))}),  # three parts of 22 taps
        (3, 33, {"pads": ((0, 0), (40, 9)), "dilations": (1, 2), "strides": (1, 3)}),  # parts of 17 and 16 taps
    ],
)
def test_long_rows_are_convolved_in_parts(rows: int, kernel: int, numbers: dict[str, tuple[int, ...]]) -> None:
    rng = np.random.default_rng(5)
    for width in (20, 71, 100):
        step, arrays = convolution(rng, (rows, width), (19, 1, 1, 1, kernel), **numbers)
        check_step(step, arrays, AVX2, at_end=bool(width % 2), laid=channels_last)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_threads_share_channels_of_small_maps(target: Target) -> None:
    rng = np.random.default_rng(2)
    for channels in (300, 320):
        step, arrays = convolution(rng, (7, 7), (channels, 1, 1, 3, 3), pads=((1, 1), (1, 1)))
        check_step(step, arrays, target, 2, laid=channels_last)

"""Matmuls of any number of rows by the same code."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.dot import FMA
from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.contraction.build import ResultTensors, register_product
from irload.plan.backends.llvm.kernels.contraction.heights import any_heights, counts, even_heights
from irload.plan.backends.llvm.target import AVX2, AVX512, Target
from irload.plan.backends.llvm.tile import SumLevel
from irload.plan.backends.llvm.tuning import MANY_TILES
from irload.plan.ir.steps import IDENTITY, MatMulStep
from tests.plan.llvm.convolutions import check_step, convolution
from tests.plan.llvm.harness import TARGETS, channels_last
from tests.plan.programs import constant, value


@pytest.mark.parametrize("rows", [1, 2, 3, 6, 12, 13, 14])
def test_tiles_cut_a_line_exactly(rows: int) -> None:
    heights = any_heights(rows)
    for columns in range(MANY_TILES * rows, 40 * rows):
        tiles = counts(columns, rows)
        if tiles is not None:
            assert min(tiles) >= 0
            assert sum(n * height for n, height in zip(tiles, heights, strict=True)) == columns


@pytest.mark.parametrize("rows", [1, 2, 3, 6, 9, 13, 14])
@pytest.mark.parametrize("free", [False, True])
def test_even_heights_cut_a_line_into_the_fewest_tiles(rows: int, free: bool) -> None:
    for columns in range(1 + free, 5 * rows):
        heights = even_heights(columns, rows, free=free)
        tiles, lowest = -(-columns // rows), heights[-1]
        assert rows >= heights[0] >= lowest > 0 or heights == (2, 1)
        assert tiles * lowest <= columns <= tiles * heights[0]


@pytest.mark.parametrize(("target", "most"), [(AVX2, 6), (AVX512, 14)], ids=["avx2", "avx512"])
def test_short_lines_share_codes(target: Target, most: int) -> None:
    """Two lengths or more share each code, except for tiles of odd heights, such as 17 = 9 + 8."""
    assert len({code(target, columns, 64) for columns in range(2, 56)}) <= most


def code(target: Target, columns: int, length: int, channels: int = 768) -> Kernel:
    axes = [Axis(columns, (0, 4 * length, 4 * channels))]
    results = ResultTensors(channels, (4,), (F32,), IDENTITY)
    return register_product(target, FMA, axes, [SumLevel(length, 4)], results, panel=2).code


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda t: t.name)
@pytest.mark.parametrize("length", [64, 768, 3072])
def test_nearly_all_lengths_share_three_codes(target: Target, length: int) -> None:
    lengths = [m for m in range(60, 600) if m not in (64, 71)]
    assert len({code(target, m, length) for m in lengths}) <= 3
    assert code(target, 183, length) == code(target, 517, length)


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda t: t.name)
def test_ragged_lines_share_one_code(target: Target) -> None:
    results = ResultTensors(96, (4,), (F32,), IDENTITY)
    products = [
        register_product(target, FMA, [Axis(m, (0, 256, 384))], [SumLevel(64, 4)], results, ragged=True)
        for m in range(1, 200)
    ]
    assert len({product.code for product in products}) <= 2, "one column, which has no stride, and all others"


def test_depths_and_channels_share_code() -> None:
    assert code(AVX2, 517, 768) == code(AVX2, 183, 256, 1024)
    assert code(AVX2, 183, 768) != code(AVX2, 183, 766), "a tail after four unrolled words"
    assert code(AVX512, 183, 768) == code(AVX512, 183, 766)
    assert code(AVX512, 183, 768) != code(AVX512, 183, 765), "a tail after two"
    assert code(AVX2, 183, 768) != code(AVX2, 183, 768, 1025), "a tail of one channel"


@pytest.mark.parametrize("rows", [57, 59, 60, 63, 64, 65, 72, 84, 100, 113])
@pytest.mark.parametrize(("length", "columns"), [(33, 40), (2048, 20)])
def test_rows_of_three_heights(rows: int, length: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    weights = (rng.standard_normal((length, columns)) / length**0.5).astype(np.float32)
    step = MatMulStep([value(rows, length), constant(weights)], [value(rows, columns)])
    data = rng.standard_normal((rows, length)).astype(np.float32)
    for k, target in enumerate(TARGETS):
        check_step(step, [data], target, 1 + k % 2)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sizes", [(1, 1), (1, 5), (2, 3), (3, 3), (4, 5), (5, 13), (9, 7)])
@pytest.mark.parametrize(
    ("kernel", "depth", "stride"),
    [((1, 1), 16, 1), ((1, 1), 9, 2), ((3, 3), 12, 1), ((3, 3), 3, 2), ((3, 3), 520, 1)],
    ids=str,
)
def test_maps_of_any_size(sizes: tuple[int, int], kernel: tuple[int, int], depth: int, stride: int) -> None:
    """Lines shorter than a tile, and lines one column longer or shorter than a number of whole tiles."""
    rng = np.random.default_rng(depth)
    pads = [(k // 2, k // 2) for k in kernel]
    step, arrays = convolution(rng, sizes, (1, 37, depth, *kernel), strides=(stride, stride), pads=pads, batch=2)
    for k, target in enumerate(TARGETS):
        check_step(step, arrays, target, 1 + k % 2, resized=True, at_end=k == 0, laid=channels_last)

"""The choice of register tiles."""

from __future__ import annotations

import pytest

from irload.plan.backends.llvm.target import AMX, AVX2, AVX512, Target
from irload.plan.backends.llvm.tile import tile_shape


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize(
    ("pitch", "limit"), [(4096, 6), (12288, 6), (2048, 12), (3072, 14), (64, 14), (-4096, 6), (0, 14)]
)
def test_rows_that_share_sets_of_the_cache_are_few(target: Target, pitch: int, limit: int) -> None:
    rows, vectors = tile_shape(target, 64, 768, 2, pitch)
    assert 1 <= rows <= limit
    assert vectors % 2 == 0
    assert rows * vectors + vectors + 1 <= target.registers
    assert rows * vectors >= 10, "too few sums to hide the latency of an FMA"


def test_more_rows_fit_a_cache_set_of_more_ways() -> None:
    assert tile_shape(AVX512, 7, 512, pitch=4096)[0] <= 6
    assert tile_shape(AMX, 7, 512, pitch=4096)[0] == 7


def test_tiles_are_wide_if_loads_delay_products() -> None:
    assert tile_shape(AVX512, 196, 1024) == (14, 2)
    assert tile_shape(AMX, 196, 1024) == (6, 4)
    assert tile_shape(AMX, 1, 1000, 2) == tile_shape(AVX512, 1, 1000, 2), "the time of a row is the time of its loads"


def test_of_equally_large_tiles_the_widest_is_chosen() -> None:
    assert tile_shape(AVX512, 5040, 512, pitch=2048) == (6, 4), "not (12, 2)"


def test_tiles_divide_common_numbers_of_channels() -> None:
    for target in (AVX512, AMX):
        for channels in (160, 256, 320, 512, 1280):
            assert channels // 16 % tile_shape(target, 49, channels)[1] == 0

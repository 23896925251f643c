"""The choice of register tiles."""

from __future__ import annotations

import pytest

from irload.plan.backends.llvm.target import AVX2, AVX512, Target
from irload.plan.backends.llvm.tile import tile_shape


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize(
    ("pitch", "most"), [(4096, 6), (12288, 6), (2048, 12), (3072, 14), (64, 14), (-4096, 6), (0, 14)]
)
def test_rows_that_share_sets_of_the_cache_are_few(target: Target, pitch: int, most: int) -> None:
    rows, vectors = tile_shape(target, 64, 768, 2, pitch)
    assert 1 <= rows <= most
    assert vectors % 2 == 0
    assert rows * vectors + vectors + 1 <= target.registers
    assert rows * vectors >= 10, "too few sums to hide the latency of an FMA"

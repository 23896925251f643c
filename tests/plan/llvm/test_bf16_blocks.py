"""The order of blocks of a bf16 product: the data that they read limit how many blocks in sequence share a panel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.contraction import tile_product
from irload.plan.backends.llvm.kernels.contraction.tile_product import TileProduct
from irload.plan.backends.llvm.kernels.reorder import Reorder
from irload.plan.backends.llvm.target import Target
from tests.plan.llvm.convolutions import convolution
from tests.plan.llvm.harness import TILED, TILES, channels_last
from tests.plan.llvm.roundings import random_convolution
from tests.plan.llvm.test_bf16 import agree, launches


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", TILED, ids=lambda t: t.name)
@pytest.mark.parametrize(("cached", "largest"), [(1, 0), (20_000, 0), (20_000, 1 << 20)])
def test_blocks_are_grouped_by_the_size_of_the_cache(
    monkeypatch: pytest.MonkeyPatch, target: Target, cached: int, largest: int
) -> None:
    monkeypatch.setattr(tile_product, "TILE_NEAR", 0)
    monkeypatch.setattr(tile_product, "TILE_DATA", cached)
    monkeypatch.setattr(tile_product, "TILE_PANEL", largest)
    rng = np.random.default_rng(cached)
    step, arrays = convolution(rng, (20, 20), (1, 70, 64, 3, 2), pads=((1, 1), (1, 0)))
    kernel = launches(step, target, innermost=True)[-1].kernel
    assert isinstance(kernel, TileProduct)
    group = kernel.count if largest else 1
    assert (kernel.group == group) if cached == 1 or largest else 1 < kernel.group < kernel.count
    for threads in (1, 2):
        agree(step, arrays, target, threads, laid=channels_last)


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize(
    ("sizes", "weights", "how", "columns", "by_tap"),
    [
        ((7, 7), (1, 200, 40, 3, 3), {"pads": ((1, 1), (1, 1))}, 49, True),
        ((14, 13), (1, 130, 33, 3, 3), {"pads": ((1, 1), (1, 1)), "strides": (2, 2)}, 49, True),
        ((13, 15), (1, 200, 64, 1, 1), {"strides": (2, 2), "batch": 3}, 56, False),
        ((8, 8), (2, 130, 32, 2, 3), {"dilations": (2, 2)}, 24, True),
        ((3, 9, 5), (1, 150, 32, 2, 1, 5), {"pads": ((0, 1), (0, 0), (3, 2))}, 162, True),
        ((6, 4), (1, 140, 32, 3, 3), {"pads": ((2, 1), (0, 4)), "dilations": (1, 3)}, 14, True),
        ((7, 9), (1, 200, 40, 3, 3), {"pads": ((1, 1), (1, 1))}, 9, False),
        ((7, 7), (1, 16, 40, 3, 3), {"pads": ((1, 1), (1, 1))}, 7, False),
    ],
)
def test_short_lines_share_tiles_if_the_copy_is_cheaper(
    sizes: tuple[int, ...], weights: tuple[int, ...], how: dict[str, Any], columns: int, by_tap: bool
) -> None:
    rng = np.random.default_rng(columns)
    step, arrays = convolution(rng, sizes, weights, **how)
    copy, product = (launch.kernel for launch in launches(step, TILES, innermost=True))
    assert isinstance(copy, Reorder)
    assert isinstance(product, TileProduct)
    assert product.columns == columns
    assert copy.spatial[-1].by_tap == by_tap  # lines of one tap are consecutive in any copy
    for threads, laid in ((1, channels_last), (2, None)):
        agree(step, arrays, TILES, threads, laid=laid)


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("size", [5, 7, 14, 20, 28])
def test_samples_and_positions_of_sequences_share_weights(size: int) -> None:
    def width(sizes: tuple[int, ...], kernel: tuple[int, ...], batch: int) -> int:
        weights = (1, 128, 64, *kernel)
        step = convolution(np.random.default_rng(0), sizes, weights, pads=((1, 1),) * len(sizes), batch=batch)[0]
        product = launches(step, TILES, innermost=True)[-1].kernel
        assert isinstance(product, TileProduct)
        return product.width

    assert len({width((size, size), (3, 3), batch) for batch in (1, 2, 5)}) == 1
    assert {width((4 * size + k,), (3,), 1) for k in range(8)} == {2}


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("weights", [(1, 64, 70, 3, 3), (1, 64, 3, 7, 7), (3, 64, 32, 3, 3)])
def test_a_new_batch_compiles_nothing(weights: tuple[int, ...]) -> None:
    def code(batch: int) -> list[Kernel]:
        step = convolution(np.random.default_rng(0), (60, 60), weights, pads=((1, 1), (1, 1)), batch=batch)[0]
        return [launch.kernel.code for launch in launches(step, TILES, innermost=True)]

    assert len(code(4)) == 2
    assert code(4) == code(5) == code(9)


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("seed", range(40))
def test_the_data_that_blocks_read(seed: int) -> None:
    """The estimate is at least the number of bytes that the blocks read, and in total about twice as much at most."""
    step, _ = random_convolution(np.random.default_rng(seed))
    kernel = launches(step, TILES, innermost=True)[-1].kernel
    assert isinstance(kernel, TileProduct)
    own = sum(stride != 0 for stride in kernel.weights)
    outer = [*zip(kernel.outer, kernel.x.outer, strict=True)][own:]
    lines = np.zeros((), np.int64)
    for size, stride in outer:
        lines = lines[..., None] + np.arange(size) * stride
    first = np.minimum(np.arange(-(-kernel.columns // kernel.rows)) * kernel.rows, kernel.columns - kernel.rows)
    columns = (first[:, None] + np.arange(kernel.rows)) * kernel.x.column
    strips = (lines.ravel()[:, None, None] + columns).reshape(-1, kernel.rows)
    chunks = [kernel.chunks.offset(k) for k in range(kernel.chunks.count)]
    places = (strips[..., None, None] + np.array(kernel.taps)[:, None] + chunks).reshape(len(strips), -1)
    blocks = -(-len(strips) // kernel.height)
    for count in (1, 2, blocks):
        touched = np.unique(places[: count * kernel.height]).size * kernel.chunks.nbytes
        assert kernel.reads(count) >= touched
    assert kernel.reads(blocks) <= 2 * touched + 4096

"""How products are split into blocks that BLAS reads in place: the rules at their bounds."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from irload.plan.backends.numpy.kernels import small_gemm
from irload.plan.backends.numpy.kernels.small_gemm import block_height, panel_width, products, transform
from irload.plan.backends.numpy.kernels.tiles import by_memory, collapse, cut, cut_range, tiles
from irload.plan.backends.numpy.kernels.views import merged, shaped, shaped_constant
from irload.plan.threads import run_part


@pytest.mark.parametrize(
    ("rows", "k", "width", "height"),
    [
        (100, 10, 10, 32),
        (32, 10, 10, 32),
        (31, 10, 10, 16),
        (15, 10, 10, 8),
        (7, 10, 10, 4),
        (4, 10, 10, 4),
        (3, 10, 10, 3),
        (1, 10, 10, 1),
        (100, 3125, 10, 32),
        (100, 3126, 10, 16),
        (100, 12501, 10, 4),
        (100, 25001, 10, 4),
        (100, 25000, 10, 4),
    ],
)
def test_the_height_of_blocks(rows: int, k: int, width: int, height: int) -> None:
    assert block_height(rows, k, width) == height


@pytest.mark.parametrize(
    ("k", "n", "width"),
    [
        (8, 16, 16),
        (8, 17, None),
        (8, 256, 256),
        (8, 272, None),
        (8, 288, 96),
        (8, 320, 64),
        (8, 336, 112),
        (8, 400, 80),
        (8, 528, 48),
        (8, 544, 32),
        (1024, 256, 64),
        (1025, 256, None),
        (488, 256, 256),
        (489, 256, 64),
        (1953, 64, 64),
        (1954, 64, 32),
        (1, 32, 32),
        (4096, 64, 32),
        (4097, 64, None),
        (15625, 16, 16),
        (15626, 16, None),
    ],
)
def test_the_width_of_panels(k: int, n: int, width: int | None) -> None:
    assert panel_width(k, n) == width


@pytest.mark.parametrize(
    ("rows", "k", "blocks"),
    [
        (3, 4, [3]),
        (4, 4, [4]),
        (5, 4, [5]),
        (7, 4, [7]),
        (8, 4, [8]),
        (33, 4, [33]),
        (36, 4, [32, 4]),
        (64, 4, [64]),
        (66, 4, [32, 34]),
        (17, 4, [17]),
        (66, 1800, [32, 34]),
        (66, 1900, [64, 2]),
        (65, 1893, [32, 33]),
        (65, 1894, [64, 1]),
    ],
)
def test_rest_of_rows(rows: int, k: int, blocks: list[int]) -> None:
    a, b = np.ones((rows, k), np.float32), np.ones((2, k, 16), np.float32)
    out = np.zeros((rows, 32), np.float32)
    part = products(a, b, out)
    assert [int(np.prod(arguments[0].shape[:-1])) for _, arguments in part] == blocks
    run_part(part)
    np.testing.assert_array_equal(out, k)


def test_plain_matrices_are_multiplied_at_once() -> None:
    a, b, out = np.ones((70, 4), np.float32), np.ones((4, 16), np.float32), np.zeros((70, 16), np.float32)
    ((function, arguments),) = products(a, b, out)
    assert function is np.matmul
    assert all(x is y for x, y in zip(arguments, (a, b, out), strict=True))


@pytest.mark.parametrize(("n", "pieces"), [(10, 1), (12, 1), (13, 13), (24, 2), (26, 13), (100, 10)])
def test_wide_matrices_are_cut_into_equal_pieces(n: int, pieces: int) -> None:
    matrix, x, out = np.ones((2, 3), np.float32), np.ones((3, n), np.float32), np.zeros((2, n), np.float32)
    with patch.object(small_gemm, "WORK", 72):
        function, (_, columns, _) = transform(matrix, x, out)
    assert len(columns) == pieces
    function(matrix, columns, small_gemm._by_panels(out, n // pieces))
    np.testing.assert_array_equal(out, 3)


def test_cutting() -> None:
    assert cut(10, 3) == [(0, 3), (3, 6), (6, 10)]
    assert cut(2, 3) == [(0, 1), (1, 2)]
    assert cut(0, 3) == []
    assert cut(5, 0) == [(0, 5)]
    assert list(cut_range(2, 12, 5)) == [(2, 7), (7, 12)]
    assert list(cut_range(2, 13, 5)) == [(2, 5), (5, 9), (9, 13)]
    assert list(cut_range(2, 12, 10)) == [(2, 12)]
    assert list(cut_range(2, 12, 9)) == [(2, 7), (7, 12)]


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((6, 4), 8, [(2, 4)] * 3),
        ((6, 4), 7, [(1, 4)] * 6),
        ((6, 4), 24, [(6, 4)]),
        ((2, 16), 8, [(1, 16)] * 2),
        ((2, 17), 8, [(5,), (6,), (6,)] * 2),
        ((20,), 8, [(6,), (7,), (7,)]),
        ((2, 2, 17), 8, [(5,), (6,), (6,)] * 4),
        ((2, 3, 8), 8, [(1, 8)] * 6),
    ],
)
def test_tiles(shape: tuple[int, ...], size: int, expected: list[tuple[int, ...]]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape)
    pieces = [a for (a, _) in tiles([array, array], 0, shape[0], size)]
    assert [p.shape for p in pieces] == expected
    np.testing.assert_array_equal(np.concatenate([p.reshape(-1) for p in pieces]), array.reshape(-1))


def test_axes_are_merged_where_all_arrays_allow_it() -> None:
    a = np.arange(24).reshape(2, 3, 4)
    assert [x.shape for x in collapse([a, a])] == [(24,)] * 2
    row = np.broadcast_to(np.arange(4), (2, 3, 4))
    assert [x.shape for x in collapse([a, row])] == [(6, 4)] * 2
    column = np.broadcast_to(np.arange(2)[:, None, None], (2, 3, 4))
    assert [x.shape for x in collapse([a, column])] == [(2, 12)] * 2
    assert [x.shape for x in collapse([a, a.transpose(0, 2, 1).copy().transpose(0, 2, 1)])] == [(2, 3, 4)] * 2
    one = np.ones((1, 1, 1))
    assert [x.shape for x in collapse([one, one])] == [(1,)] * 2
    wide = np.ones((2, 1, 4))
    assert [x.shape for x in collapse([wide, wide])] == [(8,)] * 2
    turned = by_memory([a.transpose(2, 0, 1), a.transpose(2, 0, 1)], a.transpose(2, 0, 1))
    assert [x.shape for x in turned] == [(2, 3, 4)] * 2
    same = by_memory([np.ones((1, 1, 3))], np.broadcast_to(np.ones(3), (2, 2, 3))[:1, :1])
    assert [x.shape for x in same] == [(3, 1, 1)]


@pytest.mark.parametrize("reshape", [shaped, merged, shaped_constant])
def test_only_one_length_is_left_open(reshape: object) -> None:
    with pytest.raises(ValueError, match="-2"):
        reshape(np.ones((2, 3)), 2, -2)  # type: ignore[operator]

"""Packed matrices, by NumPy and by compiled kernels, equal the definition of their layout, element by element."""

from __future__ import annotations

from itertools import product
from unittest.mock import patch

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from ml_dtypes import bfloat16

from irload.core.tensor import Array
from irload.plan.backends.llvm.elements import BF16 as IN_BF16
from irload.plan.backends.llvm.elements import WORD
from irload.plan.backends.llvm.kernel import Launch, address
from irload.plan.backends.llvm.kernels import weights as module
from irload.plan.backends.llvm.kernels.packing import Pack
from irload.plan.backends.llvm.kernels.weights import pack_weights
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.packing import Packing
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tuning import PACKED_ROWS
from irload.plan.backends.llvm.weight_memory import BLOCK, aligned_f32
from tests.harness.tiers import tiered
from tests.plan.llvm.harness import BF16, TARGETS, guarded

SIZES = (
    (1, 1, 1, 1),
    (1, 17, 1, 67),
    (2, 70, 1, PACKED_ROWS + 2),
    (1, 33, 9, 40),
    (3, 16, 4, 35),
    (1, 100, 1, 2 * PACKED_ROWS + 45),
)
"""Groups, columns, taps and rows."""
ORDERS = ((0, 1, 2, 3), (0, 1, 3, 2), (0, 3, 2, 1), (0, 2, 3, 1), (3, 0, 1, 2))
"""The axes of weights in memory."""
ALL_TARGETS = list(dict.fromkeys([*TARGETS, *BF16]))


def packings(target: Target) -> list[Packing]:
    choices = [
        Packing.panels(target.lanes, 1),
        Packing.panels(target.lanes, 3),
        Packing.panels(target.lanes, 2, IN_BF16),
    ]
    if target.lanes == 16:
        choices += [Packing.chunked(1), Packing.chunked(2), Packing.chunked(2, overlap=True)]
    return choices


def random_weights(shape: tuple[int, ...], order: tuple[int, ...], dtype: type[np.floating]) -> Array:
    """Weights whose axes are in this order in memory, the last one with gaps, between protected pages."""
    rng = np.random.default_rng(sum(shape))
    stored = guarded([shape[k] for k in order], dtype)
    stored[...] = rng.standard_normal(stored.shape)
    return stored.transpose(np.argsort(order))


def position(packing: Packing, shape: tuple[int, int], tap: Array, row: Array, column: Array) -> Array:
    """The byte offset of each element. `shape`: the taps and rows."""
    taps, rows = shape
    chunks, size = -(-rows // packing.depth), WORD // packing.word
    last = (chunks - 1) * packing.depth
    inner = row % packing.depth + (row >= last) * (chunks * packing.depth - rows if packing.overlap else 0)
    words, tile = packing.depth // packing.word, column % packing.width // packing.columns
    outer = (column // packing.width * chunks + row // packing.depth) * taps + tap
    word = (outer * packing.tiles + tile) * words + inner // packing.word
    return (word * packing.columns + column % packing.columns) * WORD + inner % packing.word * size


def packed_shape(packing: Packing, rows: int, columns: int, taps: int) -> tuple[int, ...]:
    """The shape of a packed matrix: [panel, chunk, tap, tile, word, column, member]."""
    chunks = -(-rows // packing.depth)
    panels, _, *inner = packing.shape(taps * chunks * packing.depth, columns)
    return panels, chunks, taps, *inner


def elements(packed: Array, packing: Packing) -> list[Array]:
    """The elements of each packed matrix, in order of their addresses."""
    dtype = bfloat16 if packing.element == IN_BF16 else np.float32
    return [np.ascontiguousarray(matrix).view(dtype).ravel() for matrix in packed]


def check(packed: Array, weights: Array, packing: Packing) -> None:
    """Compare every element, and the rows that pad the last chunk, with the definition."""
    groups, columns, taps, rows = weights.shape
    dtype = bfloat16 if packing.element == IN_BF16 else np.float32
    size = np.dtype(dtype).itemsize
    shape = packed_shape(packing, rows, columns, taps)
    whole = np.zeros((groups, *shape), bool)
    for group, actual in enumerate(elements(packed, packing)):
        assert actual.size == np.prod(shape)
        tap, row, column = np.indices((taps, rows, columns)).reshape(3, -1)
        places = position(packing, (taps, rows), tap, row, column) // size
        expected = weights[group, column, tap, row].astype(np.float32).astype(dtype)
        np.testing.assert_array_equal(actual[places], expected)
        whole[group].reshape(-1)[places] = True
        padding = ~whole[group].any(axis=(0, 2, 3, 5), keepdims=True)
        assert not actual.reshape(shape)[np.broadcast_to(padding, shape)].any()
        assert whole[group].sum() == weights[group].size, "two elements have one position"


CASES = [(target, packing) for target in ALL_TARGETS for packing in packings(target)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_numpy_packs_as_defined(sizes: tuple[int, int, int, int]) -> None:
    *_, taps, rows = sizes
    for packing in packings(BF16[0]):
        if not packing.overlap or rows >= packing.depth:
            weights = random_weights(sizes, ORDERS[1], np.float32)
            check(packing.packed(weights, taps), weights, packing)


@pytest.mark.parametrize(("target", "packing"), CASES, ids=lambda p: getattr(p, "name", None))
def test_constants_are_packed_as_numpy_packs_them(target: Target, packing: Packing) -> None:
    for sizes, order, dtype in [*product(SIZES, ORDERS, (np.float32, np.float16))][:: tiered(35, 1)]:
        groups, columns, taps, rows = sizes
        if packing.overlap and rows < packing.depth:
            continue
        weights = random_weights(sizes, order, dtype)
        with patch.object(module, "NUMPY_PACKED", 0):
            compiled = pack_weights(weights, packing, target, 2, taps)
        wanted = packing.packed(weights, taps)
        shape = (groups, *packed_shape(packing, rows, columns, taps))
        kept = (
            np.arange(shape[1] * packing.width).reshape(shape[1], 1, 1, packing.tiles, 1, packing.columns, 1) < columns
        )
        for actual, by_numpy in zip(elements(compiled, packing), elements(wanted, packing), strict=True):
            exists = np.broadcast_to(kept, shape[1:])
            np.testing.assert_array_equal(actual.reshape(shape[1:])[exists], by_numpy.reshape(shape[1:])[exists])


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("target", "packing"), CASES, ids=lambda p: getattr(p, "name", None))
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 1, 3, 2), (2, 0, 1, 3), (0, 3, 2, 1)], ids=str)
def test_computed_matrices_are_packed_as_defined(target: Target, packing: Packing, order: tuple[int, ...]) -> None:
    """Matrices [outer, outer, rows, columns], in one kernel for all sizes and strides."""
    if packing.overlap:
        return  # only constants have this packing
    for sizes in ((2, 3, 67, 33), (1, 2, PACKED_ROWS + 32, 16), (3, 1, 5, 70)):
        stored = guarded([sizes[k] for k in order], np.float32)
        stored[...] = np.random.default_rng(1).standard_normal(stored.shape)
        matrices = stored.transpose(np.argsort(order))
        kernel = Pack.of(packing, matrices)
        packed = guarded((kernel.nbytes,), np.uint8, aligned=64)
        packed.fill(0xFF)
        launched([Launch(kernel, [address(matrices), address(packed)])], target, 2, 0).run(0, 1)
        weights = matrices.reshape(-1, 1, *sizes[2:]).transpose(0, 3, 1, 2)
        check(packed.reshape(len(weights), -1), weights, packing)


def test_one_kernel_packs_all_sizes() -> None:
    def code(*shape: int) -> Pack:
        return Pack.of(Packing.chunked(2), np.zeros(shape, np.float32)).code

    assert code(2, 3, 67, 33) == code(1, 5, 128, 1000) == code(3, 67, 33)
    panels = [Pack.of(Packing.panels(8, n), np.zeros((67, 33), np.float32)).code for n in (1, 3)]
    assert panels[0] == panels[1]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_f16_is_widened_exactly(target: Target) -> None:
    weights = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(1, 128, 512)
    packing = Packing.panels(target.lanes, 2)
    (packed,), (wanted,) = (
        elements(p, packing) for p in (pack_weights(weights, packing, target, 1), packing.packed(weights))
    )
    np.testing.assert_array_equal(packed, wanted)


def test_reversed_taps_are_packed() -> None:
    weights = np.random.default_rng(0).standard_normal((1, 20, 24, 8)).astype(np.float32)[..., ::-2]
    packing = Packing.panels(TARGETS[0].lanes, 2)
    with patch.object(module, "NUMPY_PACKED", 0):
        packed = pack_weights(weights, packing, TARGETS[0], 1)
    check(packed, weights.reshape(1, 20, 1, -1), packing)


def test_small_weights_compile_nothing() -> None:
    weights = np.ones((1, 20, 24), np.float32)
    with patch.object(module, "prepare", side_effect=AssertionError):
        pack_weights(weights, Packing.panels(8, 2), TARGETS[0], 1)


def test_arrays_of_a_block_do_not_overlap() -> None:
    arrays = [aligned_f32((n,)) for n in (7, 1 << 20, 5, 3 * BLOCK // 8, BLOCK, 9)]
    for k, array in enumerate(arrays):
        assert array.ctypes.data % 64 == 0
        array.fill(k)
    for k, array in enumerate(arrays):
        assert (array == k).all()

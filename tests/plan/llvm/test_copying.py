"""Views that need a copy, concatenation and other layouts, of elements of all sizes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.kernels.permuting import PermutedCopy, permuted_copy
from irload.plan.backends.llvm.kernels.transposing import TransposedCopy, transposed_copy
from irload.plan.backends.llvm.selection import TABLE
from irload.plan.backends.llvm.target import AVX2, Target, _flags
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import (
    BroadcastStep,
    ConcatStep,
    ConvStep,
    RelayoutStep,
    ReshapeStep,
    SliceStep,
    TransposeStep,
)
from irload.runtime.compiled_model import CompiledModel
from tests.plan.graphs import Net, agrees
from tests.plan.llvm.harness import TARGETS, channels_last, run_step
from tests.plan.llvm.strides import strided

DTYPES = [np.dtype(t) for t in ("float32", "int64", "uint8", "float16", "bool", "int32", "float64")]


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    return rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)


def random_view(rng: np.random.Generator, dtype: np.dtype) -> tuple[Step, Array, Array]:
    """A step that views an array differently, the array, and the result."""
    rank = int(rng.integers(1, 5))
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 7, 8, 9, 16, 19, 40], rank))
    x = random_array(rng, shape, dtype)
    source = Value(shape, dtype)
    match int(rng.integers(4)):
        case 0:
            order = tuple(int(k) for k in rng.permutation(rank))
            wanted = x.transpose(order)
            return TransposeStep([source], [Value(wanted.shape, dtype)], order=order), x, wanted
        case 1:
            start, step = rng.integers(0, 3, rank), rng.choice([1, 1, 2, -1, -2], rank)
            bounds = [
                (int(a), None, int(s)) if s > 0 else (None, None, int(s)) for a, s in zip(start, step, strict=True)
            ]
            index = tuple(slice(*b) if n > 3 else slice(None) for b, n in zip(bounds, shape, strict=True))
            wanted = x[index]
            return SliceStep([source], [Value(wanted.shape, dtype)], index=index), x, wanted
        case 2:
            wide = (*rng.choice([1, 2, 3], int(rng.integers(0, 2))), *(5 if n == 1 else n for n in shape))
            wanted = np.broadcast_to(x, [int(n) for n in wide])
            return BroadcastStep([source], [Value(wanted.shape, dtype)]), x, wanted
        case _:
            half = [(2, n // 2) if n % 2 == 0 and rng.random() < 0.7 else (n,) for n in shape]
            wanted = x.reshape([n for part in half for n in part][:: int(rng.choice([1, -1]))])
            return ReshapeStep([source], [Value(wanted.shape, dtype)]), x, wanted


@pytest.mark.parametrize("seed", range(100))
def test_random_views(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, x, wanted = random_view(rng, DTYPES[int(rng.integers(len(DTYPES)))] if seed % 2 else DTYPES[0])
    target, threads = TARGETS[seed % len(TARGETS)], int(rng.integers(1, 4))
    lay = strided(rng) if seed % 3 else None
    assert TABLE.supports(step)
    (output,) = run_step(step, [x], target, threads, at_end=bool(seed % 2), laid=lay)
    np.testing.assert_array_equal(output, wanted)


targets = pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)


@targets
@pytest.mark.parametrize("shape", [(2, 3, 33, 17), (1, 70, 9, 9), (3, 8, 8, 8), (1, 16, 1, 20), (1, 2, 3, 5)], ids=str)
@pytest.mark.parametrize("from_last", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_maps_change_their_layout(shape: tuple[int, ...], from_last: bool, dtype: str, target: Target) -> None:
    rng = np.random.default_rng(0)
    x = random_array(rng, shape, np.dtype(dtype))
    step = RelayoutStep([Value(shape, x.dtype)], [Value(shape, x.dtype)])
    turned = step.inputs[0] if from_last else step.output
    (output,) = run_step(step, [x], target, 2, laid=lambda v, a: channels_last(v, a) if v is turned else a)
    np.testing.assert_array_equal(output, x)


@pytest.mark.one_in(2)
@targets
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_runs_of_every_length(dtype: np.dtype, target: Target) -> None:
    """Copies end at the last byte, for every length of a run."""
    rng = np.random.default_rng(0)
    for n in (*(range(1, 36) if dtype.itemsize == 1 else (1, 3)), 100, 257, 40_003):
        x = random_array(rng, (3, 2, n), dtype)
        step = TransposeStep([Value(x.shape, dtype)], [Value((2, 3, n), dtype)], order=(1, 0, 2))
        (output,) = run_step(step, [x], target, 2)
        np.testing.assert_array_equal(output, x.swapaxes(0, 1))


@pytest.mark.one_in(4)
@targets
@pytest.mark.parametrize("block", [(8, 2, 2), (3, 4, 2), (5, 2, 3), (16, 2, 2), (12, 1, 4), (20, 3, 1)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_blocks_are_permuted(dtype: np.dtype, block: tuple[int, int, int], target: Target) -> None:
    """From depth to space and back, for one row and for more rows than a unit has."""
    for columns in (1, 70):
        x = random_array(np.random.default_rng(0), (2, columns, *block), dtype)
        wanted = x.transpose(0, 3, 1, 4, 2)
        to_space = TransposeStep([Value(x.shape, dtype)], [Value(wanted.shape, dtype)], order=(0, 3, 1, 4, 2))
        to_depth = TransposeStep([Value(wanted.shape, dtype)], [Value(x.shape, dtype)], order=(0, 2, 4, 1, 3))
        for step, given, expected in ((to_space, x, wanted), (to_depth, wanted, x)):
            for at_end in (True, False):
                (output,) = run_step(step, [given], target, 2, at_end=at_end)
                np.testing.assert_array_equal(output, expected)


def test_the_blocks_of_a_permuted_copy() -> None:
    rows, columns = Axis(9, (1664, 1664)), Axis(13, (64, 128))
    block = [Axis(2, (32, 4)), Axis(2, (832, 8)), Axis(8, (4, 16))]
    kernel = permuted_copy([rows, block[1], columns, block[0], block[2]], 4)
    assert kernel == PermutedCopy((rows,), columns, tuple(block), 4)
    turned = [Axis(axis.size, axis.strides[::-1]) for axis in (rows, columns, *block)]
    assert permuted_copy(turned, 4) == PermutedCopy((turned[0],), turned[1], tuple(turned[2:]), 4)
    assert permuted_copy([rows, Axis(26, (4, 4))], 4) is None  # a run in both
    assert permuted_copy([Axis(9, (4, 80)), Axis(20, (36, 4))], 4) is None  # no run of the target in a block
    assert permuted_copy(block, 4) is None  # one block


@targets
@pytest.mark.parametrize("seed", range(12))
def test_concat(seed: int, target: Target) -> None:
    rng = np.random.default_rng(seed)
    dtype = DTYPES[seed % len(DTYPES)]
    rank = int(rng.integers(1, 5))
    axis = int(rng.integers(rank))
    shape = [int(n) for n in rng.choice([1, 2, 5, 8, 17], rank)]
    arrays: list[Array] = []
    for _ in range(int(rng.integers(1, 4))):
        shape[axis] = int(rng.integers(1, 20))
        arrays.append(random_array(rng, tuple(shape), dtype))
    wanted = np.concatenate(arrays, axis)
    step = ConcatStep([Value(a.shape, dtype) for a in arrays], [Value(wanted.shape, dtype)], axis=axis)
    (output,) = run_step(step, arrays, target, 2, laid=strided(rng) if seed % 2 else None)
    np.testing.assert_array_equal(output, wanted)


def test_unsupported_copies() -> None:
    for dtype, size, supported in (
        (object, 3, False),
        (np.complex128, 3, False),
        (np.float32, 0, False),
        (np.int8, 3, True),
    ):
        kind = np.dtype(dtype)
        assert TABLE.supports(ReshapeStep([Value((size, 1), kind)], [Value((1, size), kind)])) is supported


def test_axes_of_a_transposition() -> None:
    channels, rows, columns = Axis(3, (4, 400)), Axis(5, (240, 80)), Axis(20, (12, 4))
    assert transposed_copy([rows, columns, channels], 8) == TransposedCopy((rows,), 8, channels, columns, 3, 8, 2)
    assert transposed_copy([Axis(5, (80, 80)), Axis(20, (4, 4))], 8) is None
    assert transposed_copy([Axis(5, (80, 160)), Axis(20, (4, 8))], 8) is None


@pytest.mark.skipif(not AVX2.flags <= _flags(), reason="this processor has no compiled kernels")
@pytest.mark.parametrize("kind", ["conv", "of no work", "of one channel"])
def test_large_results_are_converted_to_planar_by_a_kernel(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy copies channels-last data at a tenth of the rate."""
    net, channels = Net(), 1 if kind == "of one channel" else 5
    size = 4 if kind == "of no work" else 40
    y = net.op("ReLU", net.conv(net.input(1, 3, size, size), 3, channels, 3))
    model = net.model(y)
    monkeypatch.setattr("irload.plan.backends.llvm.available.host_target", lambda: AVX2)
    compiled = CompiledModel(model, jit=True)
    compiled([np.ones(shape, np.float32) for shape in net.shapes])
    ((plan,),) = compiled._pools.values()
    steps = plan.program.steps
    assert any(isinstance(s, RelayoutStep) for s in steps) == (kind == "conv")
    assert all(isinstance(s, ConvStep | RelayoutStep) for s in steps)
    agrees(model, net.shapes)

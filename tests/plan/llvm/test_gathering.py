"""Compiled Gathers against NumPy: elements of all sizes, axes, strides, negative indices and indices out of range."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import Value
from irload.plan.ir.steps import GatherStep
from tests.plan.llvm.harness import TARGETS, channels_last, run_step
from tests.plan.llvm.strides import strided
from tests.plan.programs import run

DTYPES = [np.dtype(t) for t in ("float32", "int64", "uint8", "float16", "bool", "float64")]


def gathered(x: Array, indices: Array, axis: int) -> Array:
    """The result according to the specification."""
    at = np.where(indices < 0, indices + x.shape[axis], indices)
    outside = (at < 0) | (at >= x.shape[axis])
    output = np.take(x, np.where(outside, 0, at), axis)
    return np.where(np.reshape(outside, (*outside.shape, *(1,) * (x.ndim - axis - 1))), np.zeros((), x.dtype), output)


@pytest.mark.parametrize("seed", range(80))
def test_random_gathers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = DTYPES[int(rng.integers(len(DTYPES)))]
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 7, 16, 19, 70, 300], int(rng.integers(1, 4))))
    x = rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
    axis = int(rng.integers(len(shape)))
    count = tuple(int(n) for n in rng.choice([1, 2, 5, 9], int(rng.integers(0, 3))))
    reach = shape[axis] + (2 if seed % 3 == 0 else 0)
    indices = rng.integers(-reach, reach, count).astype("int32" if seed % 2 else "int64")
    wanted = gathered(x, indices, axis)
    if dtype == np.float16 and seed % 3:
        wanted = wanted.astype(np.float32)
    step = GatherStep(
        [Value(shape, dtype), Value(count, indices.dtype)], [Value(wanted.shape, wanted.dtype)], axis=axis
    )
    laid = [None, channels_last, strided(rng)][seed % 3]
    (output,) = run_step(
        step, [x, indices], TARGETS[seed % len(TARGETS)], int(rng.integers(1, 4)), at_end=bool(seed % 2), laid=laid
    )
    np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize("seed", range(60))
def test_random_gathers_with_shared_axes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = DTYPES[int(rng.integers(len(DTYPES)))]
    sizes = [int(n) for n in rng.choice([1, 2, 3, 7, 19], int(rng.integers(2, 5)))]
    shared = int(rng.integers(1, len(sizes)))
    axis = int(rng.integers(shared, len(sizes)))
    x = rng.integers(0, 2 if dtype.kind == "b" else 100, sizes).astype(dtype)
    count = (*sizes[:shared], *(int(n) for n in rng.choice([1, 2, 5, 40], int(rng.integers(0, 3)))))
    reach = sizes[axis] + (2 if seed % 3 == 0 else 0)
    indices = rng.integers(-reach, reach, count).astype("int32" if seed % 2 else "int64")
    lead = sizes[:shared]
    parts = [gathered(x[at], indices[at], axis - shared) for at in np.ndindex(*lead)]
    wanted = np.array(parts).reshape(*lead, *parts[0].shape)
    values = [Value(x.shape, dtype), Value(count, indices.dtype)]
    step = GatherStep(values, [Value(wanted.shape, dtype)], axis=axis, shared=shared)
    laid = [None, channels_last, strided(rng)][seed % 3]
    (output,) = run_step(
        step, [x, indices], TARGETS[seed % len(TARGETS)], int(rng.integers(1, 4)), at_end=bool(seed % 2), laid=laid
    )
    np.testing.assert_array_equal(output, wanted)
    if seed % 3 == 0:
        (output,) = run([step], dict(zip(values, (x, indices), strict=True)), step.outputs)
        np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_gathers_with_the_smallest_and_the_largest_index(target: Target) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3) + 1
    for dtype in (np.int32, np.int64):
        least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
        indices = np.array([least, greatest, -4, -5, 3, 4, least + 3], dtype)
        step = GatherStep([Value(x.shape, x.dtype), Value((7,), indices.dtype)], [Value((7, 3), x.dtype)], axis=0)
        (output,) = run_step(step, [x, indices], target)
        np.testing.assert_array_equal(output, [[0] * 3, [0] * 3, x[0], [0] * 3, x[3], [0] * 3, [0] * 3])

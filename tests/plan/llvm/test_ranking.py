"""Compiled TopK and scatters against `compute`: ties, NaN, zeros of both signs, any axis and layout."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.ops.sort.topk import TopK
from irload.plan.ir.program import Value
from irload.plan.ir.steps import ScatterStep, TopKStep
from tests.plan.llvm.harness import TARGETS, run_step
from tests.plan.llvm.strides import strided

F32 = np.dtype(np.float32)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_random_top_k(seed: int, across: bool) -> None:
    """If `across`, few elements of many lines, which are the lanes of vectors."""
    rng = np.random.default_rng([seed, across])
    sizes = [1, 2, 5, 17, 70, 300]
    shape = tuple(int(n) for n in rng.choice(sizes[2:] if across else sizes, int(rng.integers(1 + across, 4))))
    axis = int(rng.integers(len(shape)))
    x = rng.integers(-4, 5, shape).astype(F32) if seed % 2 else rng.standard_normal(shape).astype(F32)
    x[rng.random(shape) < 0.1] = -0.0
    if seed % 3 == 0:
        x[rng.random(shape) < 0.1] = np.nan
        x[rng.random(shape) < 0.1] = -np.inf
    k = int(rng.integers(1, min(shape[axis], 8 if across else shape[axis]) + 1))
    out = (*shape[:axis], k, *shape[axis + 1 :])
    largest, by_position, index = bool(seed & 2), bool(seed & 4), np.dtype(("i4", "i8")[seed // 8 % 2])
    step = TopKStep(
        [Value(shape, F32)], [Value(out, F32), Value(out, index)], axis=axis, largest=largest, by_position=by_position
    )
    op = TopK(axis=axis, mode="max" if largest else "min", sort="index" if by_position else "value")
    laid = [None, strided(rng)][seed % 2]
    outputs = run_step(step, [x], TARGETS[seed % len(TARGETS)], 1 + seed % 3, at_end=bool(seed % 5), laid=laid)
    for a, b in zip(outputs, op.compute(x, np.array(k)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("order", [1, -1])
def test_top_k_of_sorted_elements(order: int) -> None:
    """Every element replaces the worst of the heap, or, in the other order, none after the first k does."""
    x = np.sort(np.random.default_rng(0).standard_normal((1, 2000)).astype(F32))[:, ::order]
    step = TopKStep(
        [Value(x.shape, F32)],
        [Value((1, 90), F32), Value((1, 90), np.dtype(np.int64))],
        axis=1,
        largest=True,
        by_position=False,
    )
    best, positions = run_step(step, [x])
    np.testing.assert_array_equal(best, np.sort(x)[:, ::-1][:, :90])
    np.testing.assert_array_equal(np.take_along_axis(x, positions, 1), best)


@pytest.mark.parametrize("seed", range(12))
def test_random_scatters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice([1, 2, 5, 17, 40], int(rng.integers(1, 4))))
    axis = int(rng.integers(len(shape)))
    out = (*shape[:axis], int(rng.integers(1, 30)), *shape[axis + 1 :])
    x, updates = (rng.standard_normal(s).astype(F32) for s in (shape, out))
    positions = rng.integers(0, shape[axis], out).astype(("i4", "i8")[seed % 2])
    expected = x.copy()
    for at in np.ndindex(out):  # the last update of a position is kept
        expected[(*at[:axis], positions[at], *at[axis + 1 :])] = updates[at]
    step = ScatterStep(
        [Value(shape, F32), Value(out, positions.dtype), Value(out, F32)], [Value(shape, F32)], axis=axis
    )
    laid = [None, strided(rng)][seed % 2]
    (output,) = run_step(step, [x, positions, updates], TARGETS[seed % len(TARGETS)], 1 + seed % 2, laid=laid)
    np.testing.assert_array_equal(output, expected)

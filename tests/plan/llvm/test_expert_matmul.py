"""Compiled products of rows that are sorted by expert, against matmuls of each expert's rows; the order of the rows."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.plan.ir.program import Value
from irload.plan.ir.steps import ExpertMatMulStep, ExpertOrderStep
from tests.plan.llvm.harness import TARGETS, run_step
from tests.plan.llvm.strides import strided

F32 = np.dtype(np.float32)


@pytest.mark.parametrize("seed", range(30))
def test_random_experts(seed: int) -> None:
    """Any number of rows per expert, also none for most; any widths, layouts, targets and threads.

    The weights are one constant per expert, or one for all.
    """
    rng = np.random.default_rng(seed)
    experts, depth, columns = int(rng.integers(2, 9)), int(rng.integers(1, 70)), int(rng.integers(1, 200))
    chances = rng.random(experts) * (rng.random(experts) < 0.6) + 1e-6
    rows = int(rng.choice([1, 2, 9, 40, 120]))
    counts = rng.multinomial(rows, chances / chances.sum()).astype(("i4", "i8")[seed % 2])
    x = rng.standard_normal((rows, depth)).astype(F32)
    weights = [rng.standard_normal((depth, columns)).astype(F32) for _ in range(experts)]
    transpose = bool(seed // 2 % 2)
    matrices = [np.ascontiguousarray(w.T if transpose else w) for w in weights]
    constants = list(map(Value.of, matrices if seed % 3 else [np.stack(matrices)]))
    inputs = [Value(x.shape, F32), Value(counts.shape, counts.dtype), *constants]
    step = ExpertMatMulStep(inputs, [Value((rows, columns), F32)], transpose=transpose)
    step.check()
    laid = [None, strided(rng)][seed % 2]
    target, threads = TARGETS[seed % len(TARGETS)], 1 + seed % 3
    (actual,) = run_step(step, [x, counts], target, threads, at_end=bool(seed % 5), laid=laid)
    parts = np.split(x.astype(np.float64), np.cumsum(counts)[:-1])
    expected = np.concatenate([part @ w for part, w in zip(parts, weights, strict=True)])
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * np.sqrt(depth))


@pytest.mark.parametrize("seed", range(20))
def test_order_of_pairs(seed: int) -> None:
    """Any number of rows and experts, in any layout, as i32 and i64."""
    rng = np.random.default_rng(seed)
    rows, k, experts = int(rng.choice([1, 2, 30])), int(rng.integers(1, 5)), int(rng.integers(4, 12))
    chosen = np.stack([rng.permutation(experts)[:k] for _ in range(rows)]).astype(("i4", "i8")[seed % 2])
    shapes = (rows * k,), (rows * k,), (experts,), (rows, k)
    step = ExpertOrderStep([Value(chosen.shape, chosen.dtype)], [Value(s, np.dtype(np.int32)) for s in shapes])
    step.check()
    target = TARGETS[seed % len(TARGETS)]
    row, expert, counts, positions = run_step(step, [chosen], target, laid=[None, strided(rng)][seed // 2 % 2])
    assert (np.diff(expert) >= 0).all()
    np.testing.assert_array_equal(counts, np.bincount(chosen.reshape(-1), minlength=experts))
    np.testing.assert_array_equal(np.sort(positions, axis=None), np.arange(rows * k))
    np.testing.assert_array_equal(expert[positions], chosen)
    np.testing.assert_array_equal(row[positions], np.repeat(np.arange(rows)[:, None], k, 1))

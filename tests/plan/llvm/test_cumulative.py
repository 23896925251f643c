"""Compiled CumSum against `compute`, bit for bit: any axis, layout and type."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.ops.arithmetic.cumsum import CumSum
from irload.plan.ir.program import Value
from irload.plan.ir.steps import CumulativeSumStep
from tests.plan.llvm.harness import TARGETS, run_step
from tests.plan.llvm.strides import strided


@pytest.mark.parametrize("seed", range(36))
def test_random_sums(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice([1, 2, 5, 17, 40], int(rng.integers(1, 5))))
    axis, dtype = int(rng.integers(len(shape))), np.dtype(("f4", "i4", "i8")[seed % 3])
    exclusive, reverse = bool(seed & 4), bool(seed & 8)
    x = rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(-(2**30), 2**30, shape)
    x = x.astype(dtype)
    if seed % 12 == 0:
        x.flat[rng.integers(x.size)] = np.nan
    values = [Value(shape, dtype)], [Value(shape, dtype)]
    step = CumulativeSumStep(*values, axis=axis, exclusive=exclusive, reverse=reverse)
    laid = [None, strided(rng)][seed // 3 % 2]
    (output,) = run_step(step, [x], TARGETS[seed % len(TARGETS)], 1 + seed % 3, at_end=bool(seed % 5), laid=laid)
    np.testing.assert_array_equal(output, CumSum(exclusive=exclusive, reverse=reverse).compute(x, np.array(axis)))

"""Attention by a compiled kernel, in f32."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.plan.ir.steps import Attention
from tests.plan.llvm.attentions import heads_first, random_attention
from tests.plan.llvm.harness import TARGETS, run_step
from tests.plan.programs import run, value


@pytest.mark.parametrize("seed", range(40))
def test_random_attention(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = random_attention(rng, [1, 2, 5, 8, 16, 31, 64, 100], seed % 3)
    (wanted,) = run([step], dict(zip(step.inputs, arrays, strict=True)), step.outputs, passes=False)
    for target in TARGETS:
        laid = heads_first if rng.integers(2) else None
        how = {"at_end": bool(rng.integers(2)), "laid": laid}
        (found,) = run_step(step, arrays, target, int(rng.integers(1, 4)), **how)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6 * max(1.0, float(np.nanmax(np.abs(wanted)))))


@pytest.mark.parametrize("scale", [1.0, 0.0, -2.0, 40.0])
def test_any_scale(scale: float) -> None:
    rng = np.random.default_rng(3)
    q, k, v = value(2, 20, 17), value(2, 35, 17), value(2, 35, 9)
    step = Attention([q, k, v], [value(2, 20, 9)], scale=scale)
    arrays = [rng.standard_normal(a.shape).astype(np.float32) for a in step.inputs]
    (wanted,) = run([step], dict(zip(step.inputs, arrays, strict=True)), step.outputs, passes=False)
    for target in TARGETS:
        (found,) = run_step(step, arrays, target)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6 * max(1.0, scale))

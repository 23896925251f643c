"""Attention by a compiled kernel."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.ir.program import Value
from irload.plan.ir.steps import Attention
from tests.plan.llvm.harness import TARGETS, run_step
from tests.plan.programs import run, value


def heads_first(value: Value, plain: Array) -> Array:
    """Heads lie between batch and width, as projections make them: [batch, length, heads, width] in memory."""
    if len(value.shape) != 4:
        return plain
    b, h, n, d = value.shape
    return plain.reshape(b, n, h, d).swapaxes(1, 2)


@pytest.mark.parametrize("seed", range(40))
def test_random_attention(seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch, heads = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    queries, keys, width, depth = (int(rng.choice([1, 2, 5, 8, 16, 31, 64, 100])) for _ in range(4))
    causal = bool(rng.integers(2))
    shared = bool(rng.integers(2))
    q, k = value(batch, heads, queries, width), value(batch, 1 if shared else heads, keys, width)
    v = value(batch, 1 if shared else heads, keys, depth)
    shapes = [(), (queries, keys), (1, 1, 1, keys), (batch, 1, queries, keys), (1, heads, queries, 1)]
    shape = () if causal else shapes[int(rng.integers(len(shapes)))]
    mask = [value(*shape)] if shape else []
    step = Attention([q, k, v, *mask], [value(batch, heads, queries, depth)], scale=0.3, causal=causal)
    arrays = [rng.standard_normal(a.shape).astype(np.float32) for a in step.inputs]
    if mask and seed % 3 == 0:
        arrays[3][rng.random(shape) < 0.3] = -np.inf
    if mask and seed % 3 == 1:
        step.inputs[3] = Value(shape, np.dtype(bool))
        arrays[3] = rng.random(shape) < 0.7
    (wanted,) = run([step], dict(zip(step.inputs, arrays, strict=True)), step.outputs, passes=False)
    for target in TARGETS:
        laid = heads_first if rng.integers(2) else None
        how = {"at_end": bool(rng.integers(2)), "laid": laid}
        (found,) = run_step(step, arrays, target, int(rng.integers(1, 4)), **how)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6 * max(1.0, float(np.nanmax(np.abs(wanted)))))

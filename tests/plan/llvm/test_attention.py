"""Attention by a compiled kernel, in f32."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from weakref import WeakValueDictionary

from irload.ops.sequence.attention import ScaledDotProductAttention
from irload.plan.backends.base import Options
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.attention import select_attention
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.program import Program
from irload.plan.ir.steps import AttentionStep
from irload.plan.memory.memory import Memory
from tests.plan.llvm.attentions import add_sink, heads_first, random_attention
from tests.plan.llvm.harness import TARGETS, TILES, run_step
from tests.plan.programs import run, value


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(40))
def test_random_attention(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = random_attention(rng, [1, 2, 5, 8, 16, 31, 64, 100], seed % 3)
    (wanted,) = run([step], dict(zip(step.inputs, arrays, strict=True)), step.outputs, passes=False)
    for target in TARGETS:
        laid = heads_first if rng.integers(2) else None
        how = {"at_end": bool(rng.integers(2)), "laid": laid}
        (output,) = run_step(step, arrays, target, int(rng.integers(1, 4)), **how)
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=2e-6 * max(1.0, float(np.nanmax(np.abs(wanted)))))


@pytest.mark.parametrize("seed", range(30))
def test_few_queries(seed: int) -> None:
    """Keys and values are read in place: no byte beyond the last one."""
    rng = np.random.default_rng(seed)
    batch, heads = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    queries, keys = int(rng.integers(1, 9)), int(rng.choice([1, 7, 8, 9, 31, 64, 65, 200]))
    width, depth = (int(rng.choice([16, 32, 64, 80])) for _ in range(2))
    shared = bool(rng.integers(2))
    inputs = [
        value(batch, heads, queries, width),
        *(value(batch, 1 if shared else heads, keys, n) for n in (width, depth)),
    ]
    step = AttentionStep(inputs, [value(batch, heads, queries, depth)], scale=0.3)
    arrays = [rng.standard_normal(a.shape).astype(np.float32) for a in step.inputs]
    (wanted,) = run([step], dict(zip(step.inputs, arrays, strict=True)), step.outputs, passes=False)
    for target in TARGETS:
        laid = heads_first if rng.integers(2) else None
        (output,) = run_step(step, arrays, target, int(rng.integers(1, 4)), at_end=bool(rng.integers(2)), laid=laid)
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("seed", range(24))
def test_sinks(seed: int) -> None:
    """A further score for all rows, per head or per row, together with masks of all kinds."""
    rng = np.random.default_rng(seed)
    step, arrays = random_attention(rng, [1, 2, 5, 8, 16, 31, 64, 100], seed % 3)
    add_sink(rng, step, arrays)
    mask = arrays[3] if step.masks else np.zeros((), np.float32)
    op = ScaledDotProductAttention(causal=step.causal)
    wanted = op.compute(*arrays[:3], mask, np.float32(step.scale).reshape(()), arrays[-1])
    for target in TARGETS:
        laid = heads_first if rng.integers(2) else None
        (output,) = run_step(step, arrays, target, int(rng.integers(1, 4)), at_end=bool(rng.integers(2)), laid=laid)
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=4e-6)


@pytest.mark.parametrize("mask_shape", [None, (1, 1, 1, 1, 70), (2, 3, 7, 1, 70), (2, 1, 7, 1, 1)])
def test_heads_that_share_keys_are_rows_of_one_matrix(mask_shape: tuple[int, ...] | None) -> None:
    rng = np.random.default_rng(4)
    q, k, v = value(2, 3, 7, 1, 16), value(2, 3, 1, 70, 16), value(2, 3, 1, 70, 24)
    masks = [] if mask_shape is None else [value(*mask_shape)]
    step = AttentionStep([q, k, v, *masks], [value(2, 3, 7, 1, 24)], scale=0.25)
    arrays = [rng.standard_normal(a.shape).astype(np.float32) for a in step.inputs]
    (wanted,) = run([step], dict(zip(step.inputs, arrays, strict=True)), step.outputs, passes=False)
    for target in TARGETS:
        (output,) = run_step(step, arrays, target, 2)
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("scale", [1.0, 0.0, -2.0, 40.0])
def test_any_scale(scale: float) -> None:
    rng = np.random.default_rng(3)
    q, k, v = value(2, 20, 17), value(2, 35, 17), value(2, 35, 9)
    step = AttentionStep([q, k, v], [value(2, 20, 9)], scale=scale)
    arrays = [rng.standard_normal(a.shape).astype(np.float32) for a in step.inputs]
    (wanted,) = run([step], dict(zip(step.inputs, arrays, strict=True)), step.outputs, passes=False)
    for target in TARGETS:
        (output,) = run_step(step, arrays, target)
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=2e-6 * max(1.0, scale))


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_large_scores(scale: float) -> None:
    """For scores of 10¹² and more, the rounding error of the product with the scale exceeds the range of e^x."""
    rng = np.random.default_rng(5)
    q, k, v = value(2, 20, 17), value(2, 35, 17), value(2, 35, 9)
    step = AttentionStep([q, k, v], [value(2, 20, 9)], scale=scale)
    arrays = [rng.standard_normal(a.shape).astype(np.float32) for a in step.inputs]
    arrays[1][0, 4, 3], arrays[1][1, 7, 2] = 1e12, 1e35
    (wanted,) = run([step], dict(zip(step.inputs, arrays, strict=True)), step.outputs, passes=False)
    assert np.isfinite(wanted).all()
    for target in TARGETS:
        (output,) = run_step(step, arrays, target)
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_sizes_share_one_kernel(precision: str) -> None:
    """The kernel reads batch, heads, queries and keys at run time: other sizes compile nothing."""

    def code(batch: int, heads: int, queries: int, keys: int) -> Kernel:
        q, k, v = (value(batch, heads, n, 64) for n in (queries, keys, keys))
        step = AttentionStep([q, k, v, value(batch, 1, 1, keys)], [value(batch, heads, queries, 64)], scale=0.125)
        memory = Memory(Program([step], step.inputs, step.outputs))
        selector = Selector(memory, TILES, Options(2, precision=precision), WeakValueDictionary())
        return select_attention(step, selector)[-1].kernel.code

    wanted = code(1, 12, 64, 64)
    for sizes in ((1, 12, 65, 65), (3, 12, 128, 100), (1, 4, 37, 500), (2, 16, 1000, 33)):
        assert code(*sizes) == wanted

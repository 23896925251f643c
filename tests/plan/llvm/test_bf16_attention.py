"""Attention in bf16 by AMX and AVX512_BF16: emulated, and native if the machine supports them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from weakref import WeakValueDictionary

from ml_dtypes import bfloat16

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.llvm.compiler import compile_object
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels import attention
from irload.plan.backends.llvm.kernels.attention import strips
from irload.plan.backends.llvm.loader import load
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import AMX, Target
from irload.plan.ir.program import Program
from irload.plan.ir.steps import AttentionStep
from irload.plan.memory.memory import Memory
from tests.plan.llvm.attentions import add_sink, heads_first, random_attention
from tests.plan.llvm.harness import BF16, DOTS, TILES, WIDE, run_step
from tests.plan.programs import value

SIZES = [1, 2, 5, 15, 16, 17, 31, 32, 33, 64, 100]


def reference(step: AttentionStep, arrays: list[Array], *, magnitudes: bool = False) -> Array:
    """The results in f64 of inputs rounded to bf16, or with the magnitudes of v instead of v."""
    q, k, v = (a.astype(bfloat16).astype(np.float64) for a in arrays[:3])
    scores = q @ k.swapaxes(-1, -2) * step.scale
    if step.masks:
        mask = arrays[3]
        scores = np.where(mask, scores, step.dropped) if mask.dtype == np.bool_ else scores + mask
    if step.causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if step.has_sink:
        scores = np.concatenate([scores, np.broadcast_to(arrays[-1], (*scores.shape[:-1], 1))], -1)
        v = np.concatenate([v, np.zeros_like(v[..., :1, :])], -2)
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ (np.abs(v) if magnitudes else v)


def agrees(step: AttentionStep, output: Array, arrays: list[Array]) -> None:
    """Only the exponentials were rounded to bf16, by at most 2⁻⁸; all else is f32."""
    wanted, allowed = reference(step, arrays), reference(step, arrays, magnitudes=True)
    np.testing.assert_array_equal(np.isnan(output), np.isnan(wanted))
    assert np.nanmax(np.abs(output - wanted) - allowed * (2**-8 + 2**-16), initial=0) <= 1e-6


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(40))
def test_random_attention(target: Target, seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = random_attention(rng, SIZES, seed % 3)
    if seed % 4 == 3:
        add_sink(rng, step, arrays)
    laid = heads_first if rng.integers(2) else None
    how = {"at_end": bool(rng.integers(2)), "laid": laid, "precision": "bf16"}
    (output,) = run_step(step, arrays, target, int(rng.integers(1, 4)), **how)
    agrees(step, output, arrays)


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
def test_grouped_heads(target: Target) -> None:
    """Some queries share each head of keys and values; the mask is shared by all."""
    rng = np.random.default_rng(1)
    q, k, v = value(2, 3, 4, 40, 24), value(2, 3, 1, 50, 24), value(3, 1, 50, 20)
    step = AttentionStep([q, k, v, value(40, 50)], [value(2, 3, 4, 40, 20)], scale=0.2, causal=True)
    arrays = [rng.standard_normal(a.shape).astype(np.float32) for a in step.inputs]
    (output,) = run_step(step, arrays, target, 2, precision="bf16")
    agrees(step, output, arrays)


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("scale", [1.0, 0.0, -0.5, 3.0])
def test_any_scale(target: Target, scale: float) -> None:
    rng = np.random.default_rng(2)
    q, k, v = value(2, 20, 17), value(2, 35, 17), value(2, 35, 9)
    step = AttentionStep([q, k, v], [value(2, 20, 9)], scale=scale)
    arrays = [rng.standard_normal(a.shape).astype(np.float32) for a in step.inputs]
    (output,) = run_step(step, arrays, target, precision="bf16")
    agrees(step, output, arrays)


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
def test_nan_and_infinities_equal_f32(target: Target) -> None:
    rng = np.random.default_rng(4)
    q, k, v = value(40, 33), value(37, 33), value(37, 19)
    step = AttentionStep([q, k, v, value(40, 37)], [value(40, 19)], scale=0.2)
    arrays = [rng.standard_normal(a.shape).astype(np.float32) for a in step.inputs]
    arrays[0][3, 32], arrays[0][4, 0], arrays[0][39, 1] = np.nan, np.inf, -np.inf
    arrays[2][36, 7], arrays[2][5, 8] = np.nan, np.inf
    arrays[3][6], arrays[3][7, 5], arrays[3][8, 36], arrays[3][9, 0] = -np.inf, -np.inf, np.nan, np.inf
    (wanted,) = run_step(step, arrays, target, precision="f32")
    (output,) = run_step(step, arrays, target, precision="bf16")
    np.testing.assert_array_equal(np.isnan(output), np.isnan(wanted))
    np.testing.assert_allclose(output, wanted, rtol=0, atol=0.05)
    assert np.isnan(output[[3, 4, 6, 8, 9, 39]]).all()
    assert np.isfinite(output[10, :7]).all()
    assert np.isposinf(output[10, 8])


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
def test_later_keys_of_nan_are_ignored(target: Target) -> None:
    rng = np.random.default_rng(5)
    q, k, v = value(40, 32), value(40, 32), value(40, 16)
    step = AttentionStep([q, k, v], [value(40, 16)], scale=0.2, causal=True)
    arrays = [rng.standard_normal(a.shape).astype(np.float32) for a in step.inputs]
    arrays[1][30] = np.nan
    (output,) = run_step(step, arrays, target, precision="bf16")
    assert np.isfinite(output[:30]).all()
    assert np.isnan(output[30:]).all()


def launches(step: AttentionStep, target: Target, precision: str = "auto", *, precise: bool = False) -> list[Launch]:
    program = Program([step], step.inputs, step.outputs)
    options = Options(precise=precise, precision=precision)
    return attention.select_attention(step, Selector(Memory(program), target, options, WeakValueDictionary()))


def attend(queries: int = 64, keys: int = 64, width: int = 64, depth: int = 64) -> AttentionStep:
    q, k, v = value(2, queries, width), value(2, keys, width), value(2, keys, depth)
    return AttentionStep([q, k, v], [value(2, queries, depth)], scale=0.125)


def arithmetic(step: AttentionStep, target: Target, precision: str, *, precise: bool = False) -> str:
    """The type in which the kernel multiplies."""
    return launches(step, target, precision, precise=precise)[-1].kernel.arithmetic


def test_precision_chooses_the_kernel() -> None:
    step = attend()
    for target in (TILES, DOTS):
        assert arithmetic(step, target, "auto") == arithmetic(step, target, "bf16") == "bf16"
        assert arithmetic(step, target, "f32") == arithmetic(step, target, "auto", precise=True) == "f32"
    assert arithmetic(step, WIDE, "auto") == "f32"


@pytest.mark.parametrize(
    "step", [attend(3, 512), attend(512, 15), attend(512, width=7), attend(512, depth=7), attend(16, 32)]
)
def test_products_smaller_than_tiles_stay_in_f32(step: AttentionStep) -> None:
    assert arithmetic(step, TILES, "bf16") == "f32"


@pytest.mark.parametrize(("target", "instructions"), [(TILES, "AMX"), (DOTS, "AVX512_BF16")])
def test_explanations_include_the_precision(target: Target, instructions: str) -> None:
    step = attend()
    program = Program([step], step.inputs, step.outputs)
    executable = LlvmExecutable([step], Memory(program), target, Options(precision="bf16"))
    assert [(k.name, k.why) for k in executable.kernels] == [("Attend", f"compiled, bf16 by {instructions}")]


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("sizes", [(64, 64, 64, 64), (33, 50, 40, 20)])
def test_instructions_compile_and_load(sizes: tuple[int, int, int, int]) -> None:
    kernels = [launch.kernel for launch in launches(attend(*sizes), AMX, "bf16")]
    assert "@llvm.x86.tdpbf16ps(" in kernels[-1].text(AMX)
    for kernel in kernels:
        assert load(compile_object(kernel.text(AMX), AMX)).address


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("queries", [1, 7, 16, 17, 33, 64, 100, 197, 1000])
def test_strips_divide_queries_evenly(queries: int, threads: int) -> None:
    rows, tiles = strips(queries, 64, 3, threads)
    block = rows * tiles
    assert rows <= 16
    assert tiles in (1, 2)
    assert block <= queries
    assert -(-queries // block) * block <= queries * 1.2 + 1


def test_scores_stay_in_the_cache() -> None:
    assert strips(64, 64, 1, 1) == (16, 2)
    assert strips(64, 20_000, 1, 1) == (16, 1)


@pytest.mark.usefixtures("everything_pays")
@pytest.mark.parametrize("target", BF16, ids=lambda t: t.name)
@pytest.mark.parametrize("lowest", [-1e30, float(np.finfo(np.float32).min)])
def test_rows_whose_mask_is_the_lowest_number(target: Target, lowest: float) -> None:
    """Exporters write the lowest f32 for −∞: a row without keys is a mean of all values, not NaN."""
    rng = np.random.default_rng(5)
    q, k, v = value(20, 17), value(35, 17), value(35, 9)
    step = AttentionStep([q, k, v, value(20, 35)], [value(20, 9)], scale=0.25)
    arrays = [rng.standard_normal(a.shape).astype(np.float32) for a in step.inputs]
    arrays[3][3], arrays[3][5, 1:] = lowest, lowest
    (output,) = run_step(step, arrays, target, precision="bf16")
    agrees(step, output, arrays)

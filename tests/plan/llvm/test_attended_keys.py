"""Attention skips keys that masks drop for a whole block of queries, and only if this does not change results."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.ir.program import Value
from irload.plan.ir.steps import AttentionStep
from tests.harness.tiers import tiered
from tests.plan.llvm.harness import BF16, TARGETS, run_step
from tests.plan.programs import run, value

LOWEST = (-65504.0, -3.4028235e38, -np.inf, -1e4, -60001.0)
"""The numbers in f32 masks for keys that are dropped; −10⁴ is too high to skip them."""


def check(step: AttentionStep, arrays: list[Array], rng: np.random.Generator, rounding: float = 4e-6) -> Array:
    """Compare the kernels with NumPy's on all targets. `rounding`: relative to the largest result, in f32.

    In bf16, the result of a row whose scores are small differs by less than 2 % of the largest value.
    """
    with np.errstate(all="ignore"):
        (wanted,) = run([step], dict(zip(step.inputs, arrays, strict=True)), step.outputs, passes=False)
    largest = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
    for target in TARGETS:
        (output,) = run_step(step, arrays, target, int(rng.integers(1, 3)), at_end=bool(rng.integers(2)))
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=rounding * largest)
    values = arrays[2][np.isfinite(arrays[2])]
    for target in BF16 if rounding == 4e-6 else ():
        (output,) = run_step(step, arrays, target, 1, at_end=bool(rng.integers(2)), precision="bf16")
        np.testing.assert_allclose(output, wanted, rtol=0, atol=0.02 * np.abs(values).max())
    return wanted


def attention(kept: Array, low: float | None, rng: np.random.Generator) -> tuple[AttentionStep, list[Array]]:
    """A step whose mask [batch, 1, queries, keys] keeps some keys; boolean without `low`."""
    batch, _, queries, keys = kept.shape
    width, depth = (int(rng.choice([8, 16, 20, 64])) for _ in range(2))
    shapes = (batch, 2, queries, width), (batch, 2, keys, width), (batch, 2, keys, depth)
    inputs = [*(value(*shape) for shape in shapes), Value(kept.shape, np.dtype(bool if low is None else np.float32))]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    mask = kept if low is None else np.where(kept, np.float32(0), np.float32(low))
    averages = bool(rng.integers(2))
    step = AttentionStep(inputs, [value(batch, 2, queries, depth)], scale=0.3, averages=averages)
    return step, [*arrays, mask]


def causal(rng: np.random.Generator) -> Array:
    """A causal mask after earlier keys, sometimes with padding on one side or with rows that keep no key."""
    batch, queries, past = int(rng.integers(1, 3)), int(rng.integers(9, 130)), int(rng.choice([0, 0, 3, 40]))
    keys = queries + past + int(rng.choice([0, 0, 7]))
    kept = np.arange(keys) <= np.arange(queries)[:, None] + past
    kept = np.broadcast_to(kept, (batch, 1, queries, keys)).copy()
    match int(rng.integers(4)):
        case 0:
            kept[0, ..., : int(rng.integers(keys))] = False
        case 1:
            kept[-1, ..., int(rng.integers(keys)) :] = False
        case 2:
            kept &= rng.random(kept.shape) < 0.5
        case _:
            pass
    return kept


@pytest.mark.parametrize("seed", range(tiered(24, 400)))
def test_random_masks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = None if seed % 3 == 0 else LOWEST[rng.integers(len(LOWEST))]
    step, arrays = attention(causal(rng), low, rng)
    if low == -np.inf and not (arrays[3] == 0).any(-1).all():
        arrays[3][..., 0] = 0  # rows without keys would be NaN
    if rng.random() < 0.2:
        arrays[3] = arrays[3][:1, :, :1]  # a row for all queries
        step.inputs[3] = Value(arrays[3].shape, step.inputs[3].dtype)
    rounds = low is not None and low > -1e5 and not (arrays[3] == 0).any(-1).all()  # in rows without keys
    check(step, arrays, rng, 0.02 if rounds else 4e-6)


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
def test_scores_beyond_the_mask(size: float) -> None:
    """Products of magnitude 10⁵ outweigh the mask's −65504, so that a dropped key may have the largest score."""
    rng = np.random.default_rng(0)
    kept = np.broadcast_to(np.tri(70, dtype=bool), (1, 1, 70, 70))
    step, arrays = attention(kept, -65504.0, rng)
    arrays[0] *= np.float32(size)
    check(step, arrays, rng, 4e-6 * size)


def test_kept_keys_with_low_scores() -> None:
    """Scores of −10⁶ are below the scores of dropped keys, which therefore have all the weight."""
    rng = np.random.default_rng(0)
    step, arrays = attention(np.broadcast_to(np.tri(70, dtype=bool), (1, 1, 70, 70)), -65504.0, rng)
    arrays[0], arrays[1] = np.abs(arrays[0]), np.abs(arrays[1])
    arrays[1][..., :20, :] *= np.float32(-1e6)
    check(step, arrays, rng, 0.05)


@pytest.mark.parametrize("low", [None, -65504.0])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_values_that_are_not_finite_are_multiplied(low: float | None, number: float) -> None:
    """The exponential 0 times NaN or infinity is NaN, also for keys that the mask drops."""
    rng = np.random.default_rng(0)
    step, arrays = attention(np.broadcast_to(np.tri(70, dtype=bool), (1, 1, 70, 70)), low, rng)
    arrays[2][0, 1, 69, 3] = number
    wanted = check(step, arrays, rng)
    assert np.isnan(wanted[0, 1, :69, 3]).all()


def test_numbers_between_kept_and_dropped() -> None:
    """Keys masked by −60,001 have weight 0 in a row whose largest mask value is −50,000, but not if it is −60,000."""
    rng = np.random.default_rng(0)
    step, arrays = attention(np.broadcast_to(np.tri(70, dtype=bool), (1, 1, 70, 70)), -60001.0, rng)
    arrays[3][0, 0, 5, :6] = -60000
    arrays[3][0, 0, 50, :51] = -50000
    check(step, arrays, rng)

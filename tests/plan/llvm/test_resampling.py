"""Compiled resamplings against products with their matrices."""

from __future__ import annotations

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import Value
from tests.plan.llvm.harness import TARGETS, channels_last, guarded, run_step
from tests.plan.programs import random, resampled, value

pytest.importorskip("llvmlite")


def reversed_axis(value: Value, plain: Array) -> Array:
    """Every second element of a longer last axis, reversed."""
    return guarded((*plain.shape[:-1], 2 * plain.shape[-1]))[..., ::-2]


def matrix(kind: str, size: int) -> Array:
    """[new, size]: weights of every element."""
    if kind == "dense":
        return random(size + 3, size, seed=1)
    eye = np.eye(size, dtype=np.float32)
    if kind == "repeated":
        return eye.repeat(2, 0)
    if kind == "picked":
        return eye[::-1][: max(size - 2, 1)]
    return (0.75 * eye.repeat(2, 0) + 0.25 * np.roll(eye, 1, 0).repeat(2, 0)).astype(np.float32)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("shape", [(2, 3, 9, 18), (2, 20, 5, 7), (1, 1, 4, 1), (1, 33, 6)])
@pytest.mark.parametrize("kind", ["dense", "repeated", "picked", "linear"])
@pytest.mark.parametrize("laid", [None, channels_last, reversed_axis])
def test_resampling(shape: tuple[int, ...], kind: str, laid: object, target: Target) -> None:
    x = random(*shape)
    for axis in range(len(shape)):
        weights = matrix(kind, shape[axis])
        step = resampled(value(*shape), weights, axis)
        expected = np.moveaxis(np.tensordot(weights, x, (1, axis)), 0, axis)
        for threads, at_end in ((1, True), (3, False)):
            (output,) = run_step(step, [x], target, threads, at_end=at_end, laid=laid)
            np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("laid", [None, channels_last])
def test_nonfinite_values_stay_at_their_position(laid: object) -> None:
    x = random(1, 9, 4, 6)
    x[0, 1, 2, 3], x[0, 4, 0, 0] = np.nan, np.inf
    for axis in (2, 3):
        step = resampled(value(*x.shape), matrix("linear", x.shape[axis]), axis)
        (output,) = run_step(step, [x], laid=laid)
        picked = np.take(x, step.index, axis)
        weights = step.weight.reshape(*step.weight.shape, *(1,) * (3 - axis))
        np.testing.assert_allclose(output, (picked * weights).sum(axis + 1), rtol=1e-5, atol=1e-6)

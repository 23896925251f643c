"""1×1 convolutions move before the upsampling of their input, if that saves work and the input has no other reader."""

from __future__ import annotations

import numpy as np
import pytest

from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ConcatStep, ConvStep
from tests.plan.programs import Chain, constant, random, resampled, run, value


def up(c: Chain, x: Value, *axes: int) -> Value:
    """Upsampled by 2 along the axes, with linear weights."""
    for axis in axes:
        n = x.shape[axis]
        matrix = np.zeros((2 * n, n), np.float32)
        for k in range(2 * n):
            matrix[k, k // 2] += 0.75
            matrix[k, min(max(k // 2 + (1 if k % 2 else -1), 0), n - 1)] += 0.25
        x = c.add(resampled(x, matrix, axis))
    return x


def pointwise(c: Chain, x: Value, channels: int, stride: int = 1, kernel: int = 1) -> Value:
    weights = constant(random(1, channels, x.shape[1], kernel, kernel, seed=9))
    out = value(x.shape[0], channels, *((n - kernel) // stride + 1 for n in x.shape[2:]))
    same = {"strides": (stride,) * 2, "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
    return c.add(ConvStep([x, weights], [out], **same))


def head(c: Chain, small: Value, middle: Value, large: Value) -> Value:
    parts = [up(c, up(c, small, 2, 3), 2, 3), large, up(c, middle, 2, 3)]
    joined = c.add(ConcatStep(parts, [value(2, sum(p.shape[1] for p in parts), 8, 12)], axis=1))
    return c("relu", c("add", pointwise(c, joined, 6), constant(random(1, 6, 1, 1, seed=5))))


def kinds(steps: list[Step]) -> list[str]:
    return [type(s).__name__.removesuffix("Step") for s in steps]


def test_a_head_of_several_sizes() -> None:
    shapes = (2, 4, 2, 3), (2, 5, 4, 6), (2, 3, 8, 12)
    results = []
    for passes in (True, False):
        values, c = [value(*s) for s in shapes], Chain()
        out = head(c, *values)
        results.append(
            run(c.steps, {v: random(*v.shape, seed=k) for k, v in enumerate(values)}, [out], passes=passes)[0]
        )
    np.testing.assert_allclose(results[0], results[1], 1e-5, 1e-5)
    values, c = [value(*s) for s in shapes], Chain()
    steps = c.optimized(values, [head(c, *values)])
    assert kinds(steps) == ["Conv", *["Resample"] * 4, "Conv", "Resample", "Resample", "Conv"]
    assert [s.output.shape[2:] for s in steps if isinstance(s, ConvStep)] == [(2, 3), (4, 6), (8, 12)]
    last = steps[-1]
    assert isinstance(last, ConvStep)
    assert str(last.epilogue) == "add+add+add+relu"


def test_without_a_join_and_with_two_whole_parts() -> None:
    for whole in (0, 2):
        results = []
        for passes in (True, False):
            x, others, c = value(1, 4, 3, 3), [value(1, 2, 6, 6) for _ in range(whole)], Chain()
            data = up(c, x, 2, 3)
            if whole:
                data = c.add(ConcatStep([others[0], data, others[1]], [value(1, 8, 6, 6)], axis=1))
            out = pointwise(c, data, 5)
            arrays = {v: random(*v.shape, seed=k) for k, v in enumerate((x, *others))}
            results.append(run(c.steps, arrays, [out], passes=passes)[0])
        np.testing.assert_allclose(results[0], results[1], 1e-5, 1e-5)


@pytest.mark.parametrize("case", ["stride", "taps", "channels", "smaller", "seen", "resampled channels"])
def test_unprofitable_or_inexact_cases_are_unchanged(case: str) -> None:
    x, c = value(1, 4, 6, 6), Chain()
    larger = up(c, x, 1) if case == "resampled channels" else up(c, x, 2, 3)
    if case == "smaller":
        larger = c.add(resampled(x, np.eye(7, 6, dtype=np.float32), 2))
    out = pointwise(c, larger, 9 if case == "channels" else 4, 2 if case == "stride" else 1, 3 if case == "taps" else 1)
    steps = c.optimized([x], [out, larger] if case == "seen" else [out])
    assert kinds(steps)[-1] == "Conv"

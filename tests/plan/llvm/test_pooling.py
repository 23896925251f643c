"""Compiled poolings against windows computed one at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.backends.llvm.selection import TABLE
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import Value
from irload.plan.ir.steps import PoolStep
from tests.plan.llvm.harness import TARGETS, channels_last, guarded, run_step
from tests.plan.programs import F32, random, value

pytest.importorskip("llvmlite")

Laid = Callable[[Value, Array], Array] | None


def reversed_columns(value: Value, plain: Array) -> Array:
    """Every third element of a longer last axis, reversed."""
    return guarded((*plain.shape[:-1], 3 * plain.shape[-1]))[..., ::-3]


def repeated_channels(value: Value, plain: Array) -> Array:
    """One channel broadcast to all, if the step only reads it."""
    if value.name != "input":
        return plain
    return np.lib.stride_tricks.as_strided(plain[:, :1], plain.shape, (plain.strides[0], 0, *plain.strides[2:]))


def last_in_results(value: Value, plain: Array) -> Array:
    """Channels innermost in values that the step writes."""
    return plain if value.name == "input" else channels_last(value, plain)


def reversed_channels(value: Value, plain: Array) -> Array:
    return plain[:, ::-1]


def plain(x: Array, step: PoolStep) -> Array:
    """The pooling, window by window."""
    out = np.zeros(step.output.shape)
    for at in np.ndindex(*out.shape[2:]):
        result = x.astype(np.float64)
        for axis, (i, k, s, d, b) in enumerate(
            zip(at, step.kernel, step.strides, step.dilations, step.pads_begin, strict=True)
        ):
            taps = [i * s - b + t * d for t in range(k)]
            result = result.take([t for t in taps if 0 <= t < x.shape[2 + axis]], 2 + axis)
        window = result.reshape(*x.shape[:2], -1)
        if step.kind == "max":
            out[(..., *at)] = np.fmax.reduce(window, -1, initial=np.finfo(np.float32).min)
        else:
            count = np.prod(step.kernel) if step.divisor == "full" else max(window.shape[-1], 1)
            out[(..., *at)] = window.sum(-1) / count
    return out


def pool(x: Array, sizes: tuple[int, ...], kind: str, divisor: str = "real", **numbers: tuple[int, ...]) -> PoolStep:
    one = (1,) * len(sizes)
    attributes = {"strides": one, "dilations": one, "pads_begin": (0,) * len(sizes), **numbers}
    return PoolStep(
        [Value(x.shape, F32, name="input")], [value(*x.shape[:2], *sizes)], kind=kind, divisor=divisor, **attributes
    )


def check(step: PoolStep, x: Array, target: Target, threads: int = 1, *, laid: Laid = channels_last) -> None:
    for at_end in (False, True):
        (out,) = run_step(step, [x], target, threads, at_end=at_end, laid=laid)
        np.testing.assert_allclose(out, plain(x, step), rtol=1e-6, atol=1e-6)


GEOMETRIES = [
    ((9,), (5,), {"kernel": (2,), "strides": (2,)}),
    ((14, 15), (7, 8), {"kernel": (3, 3), "strides": (2, 2), "pads_begin": (1, 1)}),
    ((6, 7), (6, 7), {"kernel": (5, 5), "pads_begin": (2, 2)}),
    ((7, 7), (1, 1), {"kernel": (7, 7)}),
    ((5, 33), (3, 2), {"kernel": (2, 20), "strides": (2, 13), "pads_begin": (0, 1)}),
    ((9, 10), (5, 6), {"kernel": (3, 2), "strides": (1, 2), "dilations": (2, 3), "pads_begin": (0, 2)}),
    ((4, 5, 6), (2, 3, 6), {"kernel": (2, 2, 3), "strides": (2, 2, 1), "pads_begin": (0, 0, 1)}),
    ((3,), (9,), {"kernel": (2,), "strides": (1,), "pads_begin": (4,)}),
    ((2, 3), (1, 4), {"kernel": (1, 1), "strides": (1, 3), "pads_begin": (0, 3)}),
]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("sizes", "counts", "numbers"), GEOMETRIES)
@pytest.mark.parametrize(("kind", "divisor"), [("max", "real"), ("mean", "real"), ("mean", "full")])
@pytest.mark.parametrize("channels", [1, 8, 37])
def test_pooling(
    sizes: tuple[int, ...],
    counts: tuple[int, ...],
    numbers: dict[str, tuple[int, ...]],
    kind: str,
    divisor: str,
    channels: int,
    target: Target,
) -> None:
    x = random(2, channels, *sizes)
    check(pool(x, counts, kind, divisor, **numbers), x, target, threads=3)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("kind", ["max", "mean"])
@pytest.mark.parametrize("laid", [None, reversed_columns, repeated_channels])
def test_other_layouts(kind: str, laid: Laid, target: Target) -> None:
    x = random(2, 11, 9, 13)
    x = np.broadcast_to(x[:, :1], x.shape) if laid is repeated_channels else x
    check(pool(x, (4, 13), kind, kernel=(3, 3), strides=(2, 1), pads_begin=(1, 1)), x, target, laid=laid)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("seed", range(60))
def test_any_windows(seed: int, target: Target) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    *outer, width = (int(n) for n in rng.integers(1, 8, rank))
    sizes = (*outer, width if rng.random() < 0.2 else int(rng.integers(1, 180)))
    kernel = tuple(int(rng.integers(1, 5)) for _ in outer), int(rng.choice([1, 2, 3, 8, 9, 17]))
    numbers = {
        "kernel": (*kernel[0], kernel[1]),
        "strides": tuple(int(n) for n in rng.choice([1, 1, 1, 2, 3, 4, 5], rank)),
        "dilations": tuple(int(n) for n in rng.choice([1, 1, 2, 3], rank)),
        "pads_begin": tuple(int(n) for n in rng.integers(-1, 6, rank)),
    }
    beyond = rng.integers(-2, 6, rank)
    spans = ((k - 1) * d + 1 for k, d in zip(numbers["kernel"], numbers["dilations"], strict=True))
    parts = zip(sizes, spans, numbers["strides"], numbers["pads_begin"], beyond, strict=True)
    counts = tuple(max(1, (size + begin + int(end) - span) // stride + 1) for size, span, stride, begin, end in parts)
    x = random(int(rng.integers(1, 3)), int(rng.integers(1, 4)), *sizes, seed=seed)
    kind, divisor = [("max", "real"), ("mean", "real"), ("mean", "full")][seed % 3]
    step = pool(x, counts, kind, divisor, **numbers)
    laid = [None, channels_last, last_in_results, reversed_channels][int(rng.integers(4))]
    check(step, x, target, int(rng.integers(1, 4)), laid=laid)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("laid", [None, channels_last])
def test_the_mean_of_many(laid: Laid, target: Target) -> None:
    x = random(1, 5, 96, 96) + 100
    check(pool(x, (1, 1), "mean", kernel=(96, 96)), x, target, laid=laid)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("laid", [None, channels_last])
def test_nan_and_infinities(laid: Laid, target: Target) -> None:
    x = random(1, 19, 6, 6)
    x[0, 3, 2, 2], x[0, 5, 1:4, 1:4], x[0, 7, 0, 0], x[0, 9] = np.nan, -np.inf, np.inf, np.nan
    for kind in ("max", "mean"):
        for stride in (1, 2):
            check(pool(x, (3, 3), kind, kernel=(2, 2), strides=(stride, stride)), x, target, laid=laid)


def test_windows_beyond_the_address_range_are_left_to_numpy() -> None:
    x = random(1, 1, 3)
    assert TABLE.supports(pool(x, (2,), "max", kernel=(2,)))
    assert not TABLE.supports(pool(x, (2,), "max", kernel=(2,), strides=(1 << 40,)))

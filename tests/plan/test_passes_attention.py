"""Decomposed attention becomes one step, with its scale, masks and transposes; values with other readers remain."""

from __future__ import annotations

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.executor import Executor
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import (
    AttentionStep,
    BroadcastStep,
    MatMulStep,
    ReshapeStep,
    SoftmaxStep,
    TransposeStep,
)
from irload.plan.passes.pipeline import optimize
from tests.plan.programs import Chain, constant, random, run, value

HEADS, ROWS, KEYS, WIDTH = 3, 5, 7, 4
Q, K, V = random(2, HEADS, ROWS, WIDTH), random(2, HEADS, KEYS, WIDTH, seed=1), random(2, HEADS, KEYS, 6, seed=2)
BIAS, MASK = random(HEADS, ROWS, KEYS, seed=3), random(2, 1, 1, KEYS, seed=4)


def plain(scale: float = 1.0, mask: Array | float = 0.0) -> Array:
    scores = Q.astype(np.float64) @ K.swapaxes(-1, -2) * scale + mask
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True) @ V


def scores_of(c: Chain, q: Value, k: Value, **transposes: bool) -> Value:
    return c.add(MatMulStep([q, k], [value(2, HEADS, ROWS, KEYS)], **({"transpose_b": True} | transposes)))


def weighted(c: Chain, scores: Value, v: Value, **transposes: bool) -> Value:
    weights = c.add(SoftmaxStep([scores], [value(*scores.shape)], axis=3))
    return c.add(MatMulStep([weights, v], [value(2, HEADS, ROWS, 6)], **transposes))


def inputs() -> dict[Value, Array]:
    return {value(*a.shape): a for a in (Q, K, V)}


def attentions(steps: list[Step]) -> list[AttentionStep]:
    return [s for s in steps if isinstance(s, AttentionStep)]


@pytest.mark.parametrize("form", ["bare", "scaled", "divided", "masked", "two masks", "mask then scale"])
def test_attention_is_one_step(form: str) -> None:
    results: list[Array] = []
    for look in (True, False):
        arrays, c = inputs(), Chain()
        q, k, v = arrays
        s = scores_of(c, q, k)
        if form == "mask then scale":
            s = c("multiply", c("add", constant(BIAS), s), 0.25)
        elif form == "divided":
            s = c("divide", s, 3)
        elif form != "bare":
            s = c("multiply", 0.5, s)
        if "mask" in form and form != "mask then scale":
            s = c("add", s, constant(MASK))
        if form == "two masks":
            s = c("add", constant(BIAS), s)
        out = weighted(c, s, v)
        if look:
            steps = c.optimized([*arrays], [out])
            assert len(attentions(steps)) == 1
            assert not any(isinstance(s, MatMulStep | SoftmaxStep) for s in steps)
        else:
            results += run(c.steps, arrays, [out])
    expected = {
        "bare": plain(),
        "scaled": plain(0.5),
        "divided": plain(1 / 3),
        "masked": plain(0.5, MASK),
        "two masks": plain(0.5, MASK + BIAS),
        "mask then scale": plain(0.25, BIAS * 0.25),
    }
    np.testing.assert_allclose(results[0], expected[form], 1e-5, 1e-6)


def test_transposes_are_views() -> None:
    c = Chain()
    q, k, v = (value(*a.transpose(0, 1, 3, 2).shape) for a in (Q, K, V))
    arrays = {x: np.ascontiguousarray(a.transpose(0, 1, 3, 2)) for x, a in zip((q, k, v), (Q, K, V), strict=True)}
    out = weighted(c, scores_of(c, q, k, transpose_a=True, transpose_b=False), v, transpose_b=True)
    steps = c.optimized([*arrays], [out])
    assert [type(s) for s in steps] == [TransposeStep, TransposeStep, TransposeStep, AttentionStep]
    (result,) = run(steps, arrays, [out], passes=False)
    np.testing.assert_allclose(result, plain(), 1e-5, 1e-6)


@pytest.mark.parametrize("also_read", ["scores", "scaled", "weights"])
def test_values_with_other_readers_are_preserved(also_read: str) -> None:
    arrays, c = inputs(), Chain()
    q, k, v = arrays
    s = scores_of(c, q, k)
    scaled = c("multiply", s, 0.5)
    weights = c.add(SoftmaxStep([scaled], [value(*s.shape)], axis=3))
    out = c.add(MatMulStep([weights, v], [value(2, HEADS, ROWS, 6)]))
    also = {"scores": s, "scaled": scaled, "weights": weights}[also_read]
    assert not attentions(c.optimized([*arrays], [out, also]))
    first, second = run(c.steps, arrays, [out, also])
    np.testing.assert_allclose(first, plain(0.5), 1e-5, 1e-6)
    raw = Q @ K.swapaxes(-1, -2)
    grown = np.exp(raw * 0.5 - (raw * 0.5).max(-1, keepdims=True))
    expected = {"scores": raw, "scaled": raw * 0.5, "weights": grown / grown.sum(-1, keepdims=True)}[also_read]
    np.testing.assert_allclose(second, expected, 1e-5, 1e-6)


def test_softmax_over_other_axes_or_operands_is_not_attention() -> None:
    arrays, c = inputs(), Chain()
    q, k, v = arrays
    weights = c.add(SoftmaxStep([scores_of(c, q, k)], [value(2, HEADS, ROWS, KEYS)], axis=2))
    assert not attentions(c.optimized([*arrays], [c.add(MatMulStep([weights, v], [value(2, HEADS, ROWS, 6)]))]))
    c = Chain()
    weights = c.add(SoftmaxStep([scores_of(c, q, k)], [value(2, HEADS, ROWS, KEYS)], axis=3))
    turned = c.add(MatMulStep([v, weights], [value(2, HEADS, 6, ROWS)], transpose_a=True, transpose_b=True))
    assert not attentions(c.optimized([*arrays], [turned]))


@pytest.mark.parametrize("seen", ["merged", "returned", "taken again"])
def test_heads_are_merged(seen: str) -> None:
    arrays, c = inputs(), Chain()
    heads = c.add(AttentionStep([*arrays], [value(2, HEADS, ROWS, 6)], scale=1.0))
    turned = c.add(TransposeStep([heads], [value(2, ROWS, HEADS, 6)], order=(0, 2, 1, 3)))
    merged = c.add(ReshapeStep([turned], [value(2, ROWS, HEADS * 6)]))
    also = {"merged": [], "returned": [turned], "taken again": [c("exp", heads)]}[seen]
    plan = Executor(optimize(Program(c.steps, list(arrays), [merged, *also])), Options(1))
    first, *rest = plan.run(list(arrays.values()))
    expected = plain().swapaxes(1, 2)
    np.testing.assert_allclose(first, expected.reshape(2, ROWS, -1), 1e-5, 1e-6)
    if seen == "returned":
        np.testing.assert_allclose(rest[0], expected, 1e-5, 1e-6)
    if seen == "taken again":
        np.testing.assert_allclose(rest[0], np.exp(plain()), 1e-5, 1e-6)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("lead", [(), (1,), (9,), (2, 5), (3, 1)])
def test_heads_are_grouped_by_the_size_of_the_cache(lead: tuple[int, ...], threads: int) -> None:
    q, k, v = random(*lead, 60, 8), random(*lead, 90, 8, seed=1), random(*lead, 90, 5, seed=2)
    arrays = {value(*a.shape): a for a in (q, k, v)}
    out = value(*lead, 60, 5)
    mask = constant(random(60, 90, seed=3))
    (result,) = run([AttentionStep([*arrays, mask], [out], scale=0.3)], arrays, [out], threads)
    scores = q.astype(np.float64) @ k.swapaxes(-1, -2) * 0.3 + random(60, 90, seed=3)
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(result, grown / grown.sum(-1, keepdims=True) @ v, 1e-5, 1e-6)


def test_layers_with_repeated_heads_share_the_view_of_their_mask() -> None:
    q, mask, first, second = (value(2, 6, 5, 4), value(2, 1, 5, 7), value(2, 3, 7, 4), value(2, 2, 7, 4))
    arrays = {v: random(*v.shape, seed=k) for k, v in enumerate((q, mask, first, second))}
    c, out = Chain(), q
    for keys in (first, first, second):
        heads = keys.shape[1]
        apart = c.add(ReshapeStep([keys], [value(2, heads, 1, 7, 4)]))
        wide = c.add(BroadcastStep([apart], [value(2, heads, 6 // heads, 7, 4)]))
        repeated = c.add(ReshapeStep([wide], [value(2, 6, 7, 4)]))
        out = c.add(AttentionStep([out, repeated, repeated, mask], [value(2, 6, 5, 4)], scale=0.5))
    expected = arrays[q].astype(np.float64)
    for keys in (first, first, second):
        k = np.repeat(arrays[keys], 6 // keys.shape[1], 1)
        grown = np.exp(expected @ k.swapaxes(-1, -2) * 0.5 + arrays[mask])
        expected = grown / grown.sum(-1, keepdims=True) @ k
    masks = [step.inputs[3] for step in attentions(c.optimized([*arrays], [out]))]
    assert masks[0] is masks[1] is masks[2]
    assert masks[0].shape == (2, 1, 1, 5, 7)
    (result,) = run(c.steps, arrays, [out])
    np.testing.assert_allclose(result, expected, 1e-5, 1e-6)

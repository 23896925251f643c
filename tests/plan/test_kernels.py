"""Kernels against a plain computation, over shapes, layouts and threads."""

from __future__ import annotations

import numpy as np
import pytest

from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Value
from irload.plan.ir.steps import AttentionStep, ConvTransposeStep, GroupNormalizeStep, PoolStep, RecurrentStep
from irload.plan.memory.layout import Layout, channels_last
from tests.plan.programs import constant, random, resampled, run, value

THREADS = (1, 3)


def layouts_of(values: list[Value], last: bool) -> dict[Value, Layout]:
    """Channels-last layouts, or planar ones."""
    return {v: channels_last(len(v.shape)) for v in values if last}


def close(ours: object, expected: object) -> None:
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("mask", [None, "float", "bool", "causal"])
@pytest.mark.parametrize(
    ("q", "k"),
    [
        ((1, 2, 3, 4), (1, 2, 5, 4)),
        ((2, 6, 3, 4), (2, 1, 5, 4)),
        ((3, 1, 8), (3, 7, 8)),
        ((2, 4, 130, 16), (2, 4, 150, 16)),
    ],
)
def test_attention(q: tuple[int, ...], k: tuple[int, ...], mask: str | None, threads: int) -> None:
    a, b, c = random(*q), random(*k, seed=1), random(*k[:-1], 6, seed=2)
    mask_values = {"float": random(q[-2], k[-2], seed=3), "bool": random(q[-2], k[-2], seed=3) > -2}.get(mask or "")
    scores = np.einsum("...ie,...je->...ij", a, np.broadcast_to(b, (*q[:-2], *k[-2:]))).astype(np.float64) * 0.3
    if mask_values is not None:
        scores = np.where(mask_values, scores, -np.inf) if mask_values.dtype == bool else scores + mask_values
    if mask == "causal":
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = (weights / weights.sum(-1, keepdims=True)) @ c
    values, out = [value(*x.shape) for x in (a, b, c)], value(*q[:-1], 6)
    extra = [] if mask_values is None else [constant(mask_values)]
    step = AttentionStep([*values, *extra], [out], scale=0.3, causal=mask == "causal")
    close(run([step], dict(zip(values, (a, b, c), strict=True)), [out], threads)[0], expected)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", ["dense", "repeated", "picked"])
@pytest.mark.parametrize("last", [False, True])
def test_resample(axis: int, kind: str, last: bool, threads: int) -> None:
    x = random(2, 3, 40, 50)
    n = x.shape[axis]
    eye = np.eye(n, dtype=np.float32)
    matrix = {"dense": random(n + 5, n, seed=1), "repeated": eye.repeat(2, 0), "picked": eye[::-1]}[kind]
    a = value(*x.shape)
    step = resampled(a, matrix, axis)
    output = run([step], {a: x}, step.outputs, threads, layouts=layouts_of([a, step.output], last))[0]
    close(output, np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis))


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", ["max", "mean"])
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "begin"), [(2, 2, 1, 0), (3, 1, 1, 1), (3, 2, 2, 2), (1, 3, 1, 0)]
)
def test_pool(rank: int, kind: str, kernel: int, stride: int, dilation: int, begin: int, threads: int) -> None:
    x = random(2, 3, *(9, 10, 11)[:rank])
    span = (kernel - 1) * dilation + 1
    sizes = [(n + 2 * begin - span) // stride + 1 for n in x.shape[2:]]
    expected = np.zeros((2, 3, *sizes))
    wide = np.pad(x, [(0, 0), (0, 0), *[(begin, begin)] * rank], constant_values=np.nan)
    for at in np.ndindex(*sizes):
        window = wide[(..., *(slice(p * stride, p * stride + span, dilation) for p in at))].reshape(2, 3, -1)
        expected[(..., *at)] = np.nanmax(window, -1) if kind == "max" else np.nanmean(window, -1)
    a, out = value(*x.shape), value(*expected.shape)
    args = {"kernel": kernel, "strides": stride, "dilations": dilation, "pads_begin": begin}
    step = PoolStep([a], [out], kind=kind, **{k: (v,) * rank for k, v in args.items()})
    close(run([step], {a: x}, [out], threads)[0], expected)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "begin", "more"),
    [(2, 2, 1, 0, 0), (3, 2, 1, 1, 1), (3, 1, 2, 3, 0), (2, 3, 1, 0, 2)],
)
def test_transposed(groups: int, kernel: int, stride: int, dilation: int, begin: int, more: int, threads: int) -> None:
    x, w = random(2, 4, 5, 6), random(groups, 4 // groups, 3, kernel, kernel, seed=1)
    sizes = [(n - 1) * stride + (kernel - 1) * dilation + 1 - begin + more for n in (5, 6)]
    full = np.zeros((2, 3 * groups, *(s + begin + 9 for s in sizes)))
    for g, i, j in np.ndindex(groups, kernel, kernel):
        part = np.einsum("nchw,co->nohw", x[:, g * 4 // groups : (g + 1) * 4 // groups], w[g, :, :, i, j])
        rows, columns = (
            slice(i * dilation, i * dilation + 5 * stride, stride),
            slice(j * dilation, j * dilation + 6 * stride, stride),
        )
        full[:, g * 3 : g * 3 + 3, rows, columns][:, :, :5, :6] += part
    bias = random(1, 3 * groups, 1, 1, seed=2)
    expected = np.maximum(full[:, :, begin : begin + sizes[0], begin : begin + sizes[1]] + bias, 0)
    a, out = value(*x.shape), value(*expected.shape)
    step = ConvTransposeStep(
        [a, constant(w), constant(bias)],
        [out],
        strides=(stride,) * 2,
        dilations=(dilation,) * 2,
        begin=(begin,) * 2,
        epilogue=Expression(2, (Instruction("add", (0, 1)), Instruction("relu", (2,)))),
    )
    step.check()
    close(run([step], {a: x}, [out], threads)[0], expected)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", [(1, 6, 5), (3, 8, 40, 60), (2, 4, 3, 4, 5)])
def test_group_normalize(shape: tuple[int, ...], last: bool, threads: int) -> None:
    x, gamma, beta = random(*shape) + 3, random(shape[1], seed=1), random(shape[1], seed=2)
    grouped = x.reshape(shape[0], 2, -1).astype(np.float64)
    column = (-1, *(1,) * (len(shape) - 2))
    normal = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-3)
    expected = normal.reshape(shape) * gamma.reshape(column) + beta.reshape(column)
    a, out = value(*shape), value(*shape)
    step = GroupNormalizeStep([a, constant(gamma), constant(beta)], [out], groups=2, eps=1e-3)
    close(run([step], {a: x}, [out], threads, layouts=layouts_of([a, out], last))[0], expected)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("length", [1, 7])
def test_lstm_reads_in_both_directions(batch: int, length: int, threads: int) -> None:
    x, h, c = random(batch, length, 5), random(batch, 2, 4, seed=1), random(batch, 2, 4, seed=2)
    w, r, b = random(2, 16, 5, seed=3), random(2, 16, 4, seed=4), random(2, 16, seed=5)
    y, last = np.zeros((batch, 2, length, 4)), [h.copy(), c.copy()]
    for d, t in [(0, t) for t in range(length)] + [(1, t) for t in reversed(range(length))]:
        f, i, n, o = np.split(x[:, t] @ w[d].T + last[0][:, d] @ r[d].T + b[d], 4, -1)
        f, i, o = (1 / (1 + np.exp(-v)) for v in (f, i, o))
        last[1][:, d] = f * last[1][:, d] + i * np.tanh(n)
        last[0][:, d] = y[:, d, t] = o * np.tanh(last[1][:, d])
    feeds = {value(*a.shape): a for a in (x, h, c)}
    outputs = [value(*y.shape), value(*h.shape), value(*c.shape)]
    step = RecurrentStep([*feeds, *map(constant, (w, r, b))], outputs, cell="lstm", backwards=(False, True))
    for ours, expected in zip(run([step], feeds, outputs, threads), (y, *last), strict=True):
        close(ours, expected)

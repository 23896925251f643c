"""Layers of transformers: matrix products, attention, rotary embedding."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.fuzz.programs.build import Build, DoesNotFit, Value
from tests.fuzz.programs.masks import boolean_mask, mask_for, without_nan
from tests.fuzz.programs.operands import operand, split_sizes


def linear(b: Build, x: Value, out: int | None = None) -> Value:
    """A MatMul with a constant matrix, then perhaps a bias, constant or computed."""
    if x.rank < 1:
        raise DoesNotFit("scalar")
    x = b.bounded(x)
    k = x.shape[-1]
    n = out or (
        b.pick((32, 64, 48, 128)) if (b.big or b.wide) and b.chance(0.5) else b.pick((1, 2, 3, 4, 5, 8, 8, 16, 24))
    )
    turned = b.chance(0.5)
    y = b.op("MatMul", x, b.weights(*((n, k) if turned else (k, n)), fan=k), transpose_a=False, transpose_b=turned)
    if out is None and b.chance(0.5):
        y = b.add(y, b.weights(n) if b.chance(0.5) else operand(b, y.shape))
    return b.bounded(y)


def product(b: Build, x: Value) -> Value:
    """A MatMul of any two tensors: batches that broadcast, vectors, transposed operands, either one constant."""
    if x.rank < 1 or x.rank > 4:
        raise DoesNotFit("rank")
    x = b.bounded(x)
    turn_x = x.rank >= 2 and b.chance(0.3)
    x_first = b.chance(0.7)
    turn = b.chance(0.3)
    if x.rank == 1:
        k = x.shape[0]
        other = (k,) if b.chance(0.3) else (k, b.number(1, 4))
        if not x_first and len(other) == 2:
            other = other[::-1]
        turn = False
    else:
        rows, cols = x.shape[-2:][::-1] if turn_x else x.shape[-2:]
        k = cols if x_first else rows
        lead = b.pick((x.shape[:-2], (), tuple(1 if b.chance(0.5) else n for n in x.shape[:-2]), x.shape[:-2]))
        n = b.number(1, 6)
        tail = (k, n) if x_first else (n, k)
        other = (*lead, *(tail[::-1] if turn else tail))
        if b.chance(0.08):
            other, turn = (k,), False
    fan = k
    roll = b.rng.random()
    same = [v for v in b.pool if v.shape == other and v.element is b.element]
    y = b.pick(same) if same and roll < 0.5 else b.weights(*other, fan=fan) if roll < 0.65 else b.parameter(other)
    a, c, ta, tc = (x, y, turn_x, turn) if x_first else (y, x, turn, turn_x)
    value = b.op("MatMul", a, b.bounded(c), transpose_a=ta, transpose_b=tc)
    value = b.mul(value, b.scalar(0.25)) if k > 4 else value
    return b.bounded(b.add(value, operand(b, value.shape))) if b.chance(0.4) else value


def heads(b: Build, x: Value, count: int) -> Value:
    """[B,S,E] → [B,heads,S,E/heads]."""
    n, s, e = x.shape
    return b.transpose(b.reshape(x, n, s, count, e // count), 0, 2, 1, 3)


def merged(b: Build, x: Value) -> Value:
    """[B,heads,S,D] → [B,S,heads·D]."""
    n, h, s, d = x.shape
    return b.reshape(b.transpose(x, 0, 2, 1, 3), n, s, h * d)


def attention(b: Build, x: Value) -> Value:
    """Self or cross attention of tokens, with masks, grouped heads and rotary embedding; written out or the layer."""
    if x.rank != 3 or x.shape[1] > 64:
        raise DoesNotFit("no tokens")
    n, s, _ = x.shape
    count, d = b.pick((1, 2, 3, 4)), b.pick((2, 4, 8, 5)) if not b.big else b.pick((16, 32))
    group = b.pick((1, 1, 1, 2)) if count % 2 == 0 else 1
    other = x
    if b.chance(0.2):
        other = b.parameter((n, b.number(1, 8), b.number(2, 6)))
    shared = count // group
    if b.chance(0.3) and group == 1 and other is x:
        whole = linear(b, x, 3 * count * d)
        if b.chance(0.5):
            q, k, v = (heads(b, part, count) for part in b.many("Split", whole, b.const(np.int64(2)), num_splits=3))
        else:
            stack = b.transpose(b.reshape(whole, n, s, 3, count, d), 2, 0, 3, 1, 4)
            zero = b.const(np.int64(0))
            q, k, v = (
                b.op("Gather", stack, b.const(np.int64(j)), zero, version="opset8", batch_dims=0) for j in range(3)
            )
    else:
        q = heads(b, linear(b, x, count * d), count)
        k, v = (heads(b, linear(b, other, shared * d), shared) for _ in range(2))
    if b.chance(0.35) and d % 2 == 0 and other is x:
        q, k = rotary(b, q), rotary(b, k)
    if group > 1:
        k, v = repeated(b, k, group), repeated(b, v, group)
    mixed = attend(b, q, k, v)
    y = linear(b, merged(b, mixed), x.shape[2] if b.chance(0.6) else None)
    return b.add(y, x) if y.shape == x.shape and b.chance(0.7) else y


def repeated(b: Build, x: Value, group: int) -> Value:
    """Each head repeated for the members of its group."""
    n, h, s, d = x.shape
    if b.dynamic:
        raise DoesNotFit("batch")
    wide = b.op(
        "Broadcast",
        b.op("Unsqueeze", x, b.ints(2)),
        b.ints(n, h, group, s, d),
        version="opset3",
        mode=b.pick(("numpy", "bidirectional")),
    )
    return b.reshape(wide, n, h * group, s, d)


def attend(b: Build, q: Value, k: Value, v: Value) -> Value:
    """softmax(q·kᵀ)·v."""
    n, h, s, d = q.shape
    t = k.shape[2]
    if b.chance(0.35):
        causal = b.chance(0.25)
        mask = [mask_for(b, n, h, s, t, boolean=b.chance(0.4))] if b.chance(0.15 if causal else 0.75) else []
        scale = [b.scalar(b.pick((0.3, 1.5)))] if mask and b.chance(0.4) else []
        sink = [b.weights(1, h, 1, 1)] if scale and b.chance(0.4) else []
        y = b.op("ScaledDotProductAttention", q, k, v, *mask, *scale, *sink, version="opset13", causal=causal)
        return without_nan(b, y) if b.chance(0.25) else y
    scale = float(d**-0.5)
    where = b.pick(("q", "scores", "k", "divide", "none"))
    if where == "q":
        q = b.mul(q, b.scalar(scale))
    if where == "k":
        k = b.mul(k, b.scalar(scale))
    if b.chance(0.4):
        scores = b.op("MatMul", q, b.transpose(k, 0, 1, 3, 2), transpose_a=False, transpose_b=False)
    else:
        scores = b.op("MatMul", q, k, transpose_a=False, transpose_b=True)
    if where == "scores":
        scores = b.mul(scores, b.scalar(scale))
    if where == "divide":
        scores = b.binary("Divide", scores, b.scalar(d**0.5))
    if b.chance(0.1):  # clamp scores to −4…4
        scores = b.mul(b.op("Tanh", b.mul(scores, b.scalar(0.25))), b.scalar(4.0))
    for _ in range(b.pick((0, 1, 1, 2))):
        if b.chance(0.3):
            mask = boolean_mask(b, n, h, s, t)
            scores = b.op("Select", mask, scores, b.scalar(b.pick((-1e9, -np.inf))), auto_broadcast="numpy")
        else:
            scores = b.add(scores, mask_for(b, n, h, s, t, boolean=False))
    if b.chance(0.1):
        b.pool.append(scores)  # a second consumer of the scores
    weights = b.op("Softmax", scores, version="opset8", axis=b.pick((-1, 3)))
    weights = without_nan(b, weights) if b.chance(0.1) else weights
    return b.op("MatMul", weights, v, transpose_a=False, transpose_b=False)


def rotary(b: Build, x: Value) -> Value:
    """A rotary embedding of the last axis: halves or interleaved, of all of it or of its first part."""
    d = x.shape[-1]
    if d % 2 or x.rank < 2:
        raise DoesNotFit("odd")
    rest: list[Value] = []
    if d >= 4 and b.chance(0.3):
        part = b.pick(range(2, d, 2))
        x, tail = b.many("VariadicSplit", x, b.const(np.int64(-1)), b.ints(part, d - part))
        rest, d = [tail], part
    half = d // 2
    interleaved = b.chance(0.4)
    angles = b.rng.uniform(0, 3, (x.shape[-2], half))
    lead = (1,) * b.number(0, x.rank - 2)

    def table(of: object) -> Value:
        array = np.asarray(of(angles)).astype(np.float32)  # type: ignore[operator]
        if not interleaved or not pairs:
            array = np.concatenate([array, array], axis=1) if not pairs else array
        if b.dyadic:
            array = np.round(array * 4) / 4
        return b.const(array.reshape(*lead, *array.shape)) if b.chance(0.7) else b.parameter((*lead, *array.shape))

    pairs = b.chance(0.5)
    cos, sin = table(np.cos), table(np.sin)
    if interleaved:
        axis = x.rank
        first, second = _evens(b, x)
        if pairs:
            one = b.binary("Subtract", b.mul(first, cos), b.mul(second, sin))
            two = b.add(b.mul(second, cos), b.mul(first, sin))
            ones = [b.op("Unsqueeze", v, b.ints(axis)) for v in (one, two)]
            y = b.reshape(b.concat(ones, axis), *x.shape)
        else:
            ones = [b.op("Unsqueeze", v, b.ints(axis)) for v in (b.op("Negative", second), first)]
            y = b.add(b.mul(x, cos), b.mul(b.reshape(b.concat(ones, axis), *x.shape), sin))
    else:
        at = x.rank - 1
        if b.chance(0.5):
            first, second = b.many("Split", x, b.const(np.int64(at)), num_splits=2)
        else:
            first = b.op("Slice", x, b.ints(0), b.ints(half), b.ints(1), b.ints(at), version="opset8")
            second = b.op("Slice", x, b.ints(half), b.ints(1 << 30), b.ints(1), b.ints(at), version="opset8")
        if pairs:
            one = b.binary("Subtract", b.mul(first, cos), b.mul(second, sin))
            two = b.add(b.mul(second, cos), b.mul(first, sin))
            y = b.concat([one, two], at)
        else:
            minus = b.op("Negative", second) if b.chance(0.6) else b.mul(second, b.scalar(-1.0))
            order = [minus, first]
            y = b.add(b.mul(x, cos), b.mul(b.concat(order, at), sin))
    return b.concat([y, *rest], -1) if rest else y


def _evens(b: Build, x: Value) -> tuple[Value, Value]:
    """The elements at even and at odd positions along the last axis."""
    last, half = x.rank - 1, x.shape[-1] // 2
    roll = b.rng.random()
    if roll < 0.35:
        step, end, axis = b.ints(2), b.ints(1 << 30), b.ints(last)
        one, two = (b.op("Slice", x, b.ints(j), end, step, axis, version="opset8") for j in (0, 1))
        return one, two
    split = b.reshape(x, *x.shape[:-1], half, 2)
    axis = b.const(np.int64(x.rank))
    if roll < 0.7:
        one, two = (b.op("Gather", split, b.const(np.int64(j)), axis, version="opset8", batch_dims=0) for j in (0, 1))
        return one, two
    one, two = b.many("Split", split, axis, num_splits=2)
    axes = b.ints(x.rank)
    return b.op("Squeeze", one, axes), b.op("Squeeze", two, axes)


def gated(b: Build, x: Value) -> Value:
    """A gated feed-forward block: two products of the same tokens, one through an activation, multiplied."""
    if x.rank < 2:
        raise DoesNotFit("no tokens")
    inner = b.pick((4, 6, 8, 12))
    if b.chance(0.5):
        gate, up = linear(b, x, inner), linear(b, x, inner)
    else:
        whole = linear(b, x, 2 * inner)
        gate, up = b.many(
            "VariadicSplit",
            whole,
            b.const(np.int64(-1)),
            b.ints(*([inner, inner] if b.chance(0.8) else split_sizes(b, 2 * inner, 2))),
        )
    gate = b.op("Swish", gate, version="opset4") if b.chance(0.6) else b.op("Gelu", gate, version="opset7")
    y = linear(b, b.mul(gate, up), x.shape[-1])
    return b.add(y, x) if b.chance(0.7) else y


def embedded(b: Build, x: Value) -> Value:
    """Rows of a constant table, selected by an input of indices, added to tokens."""
    if x.rank != 3 or b.dynamic:
        raise DoesNotFit("no tokens")
    count = b.number(2, 9)
    where = b.parameter(x.shape[:2], b.pick((et.i64, et.i32)), kind=f"index{count}")
    rows = b.op("Gather", b.weights(count, x.shape[2]), where, b.const(np.int64(0)), version="opset8", batch_dims=0)
    return b.add(rows, x)


def einsum(b: Build, x: Value) -> Value:
    """An Einsum of two operands."""
    if x.rank != 3:
        raise DoesNotFit("no tokens")
    other = b.parameter((x.shape[2], 4)) if b.chance(0.5) else b.weights(x.shape[2], 4, fan=x.shape[2])
    return b.inexact(
        b.op("Einsum", x, other, version="opset7", equation=b.pick(("abc,cd->abd", "abc,cd->adb", "bac,cd->abd")))
    )

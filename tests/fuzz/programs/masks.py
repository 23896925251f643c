"""Masks of attention: constant, input, or computed from shapes and inputs."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.fuzz.programs.build import Build, DoesNotFit, Value

NUMPY = {"auto_broadcast": "numpy"}


def mask_for(b: Build, n: int, h: int, s: int, t: int, *, boolean: bool) -> Value:
    """A boolean or additive mask that broadcasts to scores [n,h,s,t]: per key, per query and key, and others."""
    if boolean:
        return boolean_mask(b, n, h, s, t)
    roll = b.rng.random()
    if roll < 0.2:
        return b.const(np.where(np.tri(s, t, dtype=bool), 0, lowest(b)).astype(np.float32))
    if roll < 0.5:
        return added(b, boolean_mask(b, n, h, s, t))
    shape = _shape(b, n, h, s, t)
    if roll < 0.7:
        return b.mul(b.op("Clamp", b.parameter(shape), min=-1.0, max=0.0), b.scalar(8.0))
    return b.parameter(shape)


def lowest(b: Build) -> float:
    """The number added to masked scores."""
    return b.pick((-np.inf, -65504.0, -1e9))


def added(b: Build, mask: Value) -> Value:
    """An additive mask: 0 where `mask` is true, a low number elsewhere, in the forms that exporters write."""
    roll = b.rng.random()
    if roll < 0.3:  # the decomposition of ONNX's Attention
        zero, low = b.scalar(0.0), b.op("ConvertLike", b.const(np.float32(-np.inf), et.f32), b.scalar(1.0))
        return b.op("Select", mask, zero, low, **NUMPY)
    if roll < 0.6:
        return b.op("Select", mask, b.scalar(0.0), b.scalar(lowest(b)), **NUMPY)
    number = b.op("Convert", mask, destination_type=b.element.name)
    return b.mul(b.binary("Subtract", b.scalar(1.0), number), b.scalar(b.pick((-65504.0, -1e4))))


def boolean_mask(b: Build, n: int, h: int, s: int, t: int) -> Value:
    """Booleans that broadcast to scores [n,h,s,t]: constant, input, computed from an input, or causal."""
    roll = b.rng.random()
    if roll < 0.25:
        mask = causal(b, s, t)
    elif roll < 0.4:
        mask = b.const(np.tri(s, t, dtype=bool).reshape(b.pick(((s, t), (1, 1, s, t)))))
    elif roll < 0.6:
        mask = b.op("Greater", b.parameter(_shape(b, n, h, s, t)), b.scalar(-0.75), **NUMPY)
    else:
        mask = b.parameter(_shape(b, n, h, s, t), et.boolean, kind="some")
    if b.chance(0.2):
        mask = b.op("LogicalAnd", mask, causal(b, s, t), **NUMPY)
    return mask


def causal(b: Build, s: int, t: int) -> Value:
    """A causal mask, for example True for query l and keys 0…l.

    It compares two ranges, whose ends may depend on shapes, or is a slice of a larger table.
    """
    if b.chance(0.3):
        size = max(s, t) + b.number(0, 2)
        table = b.const(np.tri(size, dtype=bool)[None, None])
        return b.op("Slice", table, b.ints(0, 0), b.ints(s, t), b.ints(1, 1), b.ints(2, 3), version="opset8")
    rows = b.op("Unsqueeze", _range(b, s), b.ints(1))
    columns = _range(b, t)
    if b.chance(0.5):
        return b.op("LessEqual", columns, rows, **NUMPY)
    gap = b.op("Subtract", columns, rows, **NUMPY)
    return b.op("LessEqual", gap, b.const(np.int64(b.pick((0, 1)))), **NUMPY)


def _range(b: Build, n: int) -> Value:
    """0…n − 1: a constant, or computed from the shape of a value that has n elements along an axis."""
    stop = b.const(np.int64(n))
    having = [(v, v.shape.index(n)) for v in b.pool if n in v.shape[1:] and not b.dynamic]
    if having and b.chance(0.7):
        value, axis = b.pick(having)
        shape = b.op("ShapeOf", value, version="opset3", output_type="i64")
        stop = b.op("Gather", shape, b.const(np.int64(axis)), b.const(np.int64(0)), version="opset8", batch_dims=0)
    return b.op("Range", b.const(np.int64(0)), stop, b.const(np.int64(1)), version="opset4", output_type="i64")


def without_nan(b: Build, x: Value) -> Value:
    """Zero where x is NaN, as in rows that see no key."""
    zero = b.op("ConvertLike", b.const(np.float32(0), et.f32), x) if b.chance(0.5) else b.scalar(0.0)
    return b.op("Select", b.op("IsNaN", x, version="opset10"), zero, x, **NUMPY)


def _shape(b: Build, n: int, h: int, s: int, t: int) -> tuple[int, ...]:
    if n * h * s * t == 0:
        raise DoesNotFit("empty")
    if b.dynamic:
        return b.pick(((s, t), (1, 1, s, t), (1, h, s, t)))
    return b.pick(((s, t), (1, 1, s, t), (n, 1, 1, t), (n, 1, s, t), (n, h, s, t), (1, h, s, t), (1, 1, 1, t)))

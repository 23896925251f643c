"""Layers that only move values: transposes, reshapes, slices, concatenations, gathers, paddings."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from irload.core import element as et
from tests.fuzz.programs.build import Build, DoesNotFit, Value
from tests.fuzz.programs.exact import Exact
from tests.fuzz.programs.operands import recent_value, split_sizes


def transpose(b: Build, x: Value) -> Value:
    """A Transpose: to channels last and back, of the last two axes, or any."""
    if x.rank < 2:
        raise DoesNotFit("one axis")
    r = x.rank
    roll = b.rng.random()
    if roll < 0.3:
        order = [0, *range(2, r), 1]
    elif roll < 0.5:
        order = [0, r - 1, *range(1, r - 1)]
    elif roll < 0.7:
        order = [*range(r - 2), r - 1, r - 2]
    else:
        order = [int(k) for k in b.rng.permutation(r)]
    return b.transpose(x, *order)


def reshape(b: Build, x: Value) -> Value:
    """A Reshape, Squeeze or Unsqueeze."""
    roll = b.rng.random()
    if roll < 0.12 and x.rank < 5:
        return b.op("Unsqueeze", x, b.ints(b.number(0, x.rank)))
    if roll < 0.22 and 1 in x.shape[1:]:
        return b.op("Squeeze", x, b.ints(1 + x.shape[1:].index(1)))
    if x.rank < 2:
        raise DoesNotFit("one axis")
    shape = list(x.shape)
    for _ in range(b.number(1, 2)):
        k = b.number(1, len(shape) - 1)
        if b.chance(0.5) and len(shape) > 2 and k + 1 < len(shape):
            shape[k : k + 2] = [shape[k] * shape[k + 1]]
        elif len(shape) < 5:
            factors = [f for f in range(1, shape[k] + 1) if shape[k] % f == 0]
            f = b.pick(factors)
            shape[k : k + 1] = [f, shape[k] // f]
    if b.chance(0.08) and len(shape) > 1 and not b.dynamic:
        shape[0:2] = [shape[0] * shape[1]]
    if b.chance(0.2) and 0 not in shape:
        shape[-1] = -1
    return b.reshape(x, *shape)


def cut(b: Build, x: Value) -> Value:
    """A Slice over some axes, with steps of any sign."""
    axes = sorted({b.number(0 if not b.dynamic else min(1, x.rank - 1), x.rank - 1) for _ in range(b.number(1, 2))})
    ends: list[tuple[int, int, int]] = []
    for a in axes:
        n = x.shape[a]
        step = b.pick((1, 1, 1, 2, -1))
        lo, hi = sorted((b.number(0, n - 1), b.number(1, n)))
        hi = max(hi, lo + 1)
        ends.append((lo, hi, step) if step > 0 else (hi - 1, lo - 1 - n if lo == 0 else lo - 1, step))
    starts, stops, steps = zip(*ends, strict=True)
    if b.chance(0.6):
        return b.op("Slice", x, b.ints(*starts), b.ints(*stops), b.ints(*steps), b.ints(*axes), version="opset8")
    return strided(b, x)


def strided(b: Build, x: Value) -> Value:
    """A StridedSlice with masks, which may remove and insert axes."""
    r = x.rank
    begin, end, step = [b.number(0, n - 1) for n in x.shape], list(x.shape), [b.pick((1, 1, 2)) for _ in x.shape]
    masks: dict[str, Any] = {name: [int(b.chance(0.4)) for _ in range(r)] for name in ("begin_mask", "end_mask")}
    masks["shrink_axis_mask"] = [int(b.chance(0.15)) for _ in range(r)]
    if b.dynamic or sum(masks["shrink_axis_mask"]) == r:
        masks["shrink_axis_mask"] = [0] * r
    masks["shrink_axis_mask"] = [
        0 if m and masks["begin_mask"][k] else m for k, m in enumerate(masks["shrink_axis_mask"])
    ]
    masks |= {"new_axis_mask": [0] * r, "ellipsis_mask": [0] * r}
    if b.dynamic:
        masks["begin_mask"][0] = masks["end_mask"][0] = 1
        step[0] = 1
    return b.op("StridedSlice", x, b.ints(*begin), b.ints(*end), b.ints(*step), **masks)


def split(b: Build, x: Value) -> list[Value]:
    """A Split or VariadicSplit."""
    axis = b.number(min(1, x.rank - 1), x.rank - 1) if b.chance(0.9) else 0
    n = x.shape[axis]
    parts = b.pick([p for p in (2, 3, 4) if p <= n] or [0])
    if not parts or (axis == 0 and b.dynamic):
        raise DoesNotFit("nothing to split")
    at = b.const(np.int64(axis if b.chance(0.7) else axis - x.rank))
    if n % parts == 0 and b.chance(0.6):
        return b.many("Split", x, at, num_splits=parts)
    sizes = split_sizes(b, n, parts)
    if b.chance(0.3) and not b.dynamic:
        sizes[-1] = -1
    return b.many("VariadicSplit", x, at, b.ints(*sizes))


def join(b: Build, x: Value) -> Value:
    """A Concat of two to four values of the pool, possibly repeated, inputs and constants included."""
    axis = b.number(min(1, x.rank - 1), x.rank - 1) if b.chance(0.9) else 0

    def fits(v: Value) -> bool:
        same = v.rank == x.rank and v.element is x.element
        return same and all(n == m or k == axis for k, (n, m) in enumerate(zip(v.shape, x.shape, strict=True)))

    values = [x]
    for _ in range(b.pick((1, 1, 2, 3))):
        roll = b.rng.random()
        shape = tuple(b.number(1, 4) if k == axis else n for k, n in enumerate(x.shape))
        if roll < 0.75:
            values.append(recent_value(b, fits))
        elif roll < 0.9 or b.dynamic or x.element is not b.element:
            values.append(b.parameter(shape, x.element))
        else:
            values.append(b.weights(*shape))
    order = b.rng.permutation(len(values))
    return b.concat([values[int(k)] for k in order], axis if b.chance(0.7) else axis - x.rank)


def gather(b: Build, x: Value) -> Value:
    """A Gather along any axis, of one or of several indices; negative ones count from the end."""
    axis = b.number(min(1, x.rank - 1), x.rank - 1)
    n = x.shape[axis]
    shape = b.pick(((), (1,), (2,), (n,), (2, 2)))
    if (prod(shape) > 0 and b.chance(0.2)) and not b.dynamic:
        where = b.parameter(shape, et.i64, kind=f"index{n}")
    else:
        where = b.const(b.rng.integers(-n, n, shape).astype(np.int64))
    return b.op("Gather", x, where, b.const(np.int64(axis)), version="opset8", batch_dims=0)


def indices(b: Build, low: int, high: int, *shape: int) -> Value:
    """Integers from `low` to `high` of a shape: constants, or clamped in the model."""
    if b.chance(0.4):
        return b.const(b.rng.integers(low, high + 1, shape).astype(np.int64))
    whole = b.const(b.rng.integers(low - 4, high + 5, shape).astype(np.int64))
    return b.op("Clamp", whole, min=low, max=high)


def scattered(b: Build, x: Value) -> Value:
    """Elements of x reduced into the elements at indices, as messages of a graph network are added to nodes."""
    if b.dynamic or not prod(x.shape):
        raise DoesNotFit("the indices have the shape of x")
    axis = b.number(0, x.rank - 1)
    count, n = b.number(1, 5), x.shape[axis]
    data = b.parameter((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.element)
    if b.chance(0.5):
        column = indices(b, -count, count - 1, *(n if k == axis else 1 for k in range(x.rank)))
        where = b.op("Broadcast", column, b.ints(*x.shape), version="opset3", mode="numpy")
    else:
        where = indices(b, -count, count - 1, *x.shape)
    known = {"reduction": b.pick(("sum", "sum", "min", "max", "mean")), "use_init_val": b.chance(0.7)}
    y = b.op("ScatterElementsUpdate", data, where, x, b.const(np.int64(axis)), version="opset12", **known)
    if y.exact is None or known["reduction"] in ("min", "max"):
        return y
    total = Exact(y.exact.grain, y.exact.largest * (n + 1))
    return replace(y, exact=total if known["reduction"] == "sum" and total.fits(y.element) else None)


def elements(b: Build, x: Value) -> Value:
    """A GatherElements along any axis, whose indices may be clamped."""
    axis = b.number(min(1, x.rank - 1), x.rank - 1)
    n, shape = x.shape[axis], list(x.shape)
    shape[axis] = b.number(1, 2 * n)
    if not b.dynamic:
        return b.op("GatherElements", x, indices(b, -n, n - 1, *shape), version="opset6", axis=axis)
    if axis == 0:
        raise DoesNotFit("the axis is dynamic")
    sizes = [b.op("Gather", _shape(b, x), b.ints(0), b.const(np.int64(0)), version="opset8", batch_dims=0)]
    target = b.concat([*sizes, b.ints(*shape[1:])], 0)
    wide = b.op("Broadcast", indices(b, -n, n - 1, 1, *shape[1:]), target, version="opset3", mode="numpy")
    return b.op("GatherElements", x, wide, version="opset6", axis=axis)


def batches(b: Build, x: Value) -> Value:
    """A Gather with batch dims."""
    if x.rank < 2 or b.dynamic:
        raise DoesNotFit("no batches, or a dynamic one")
    axis = b.number(1, x.rank - 1)
    shared = b.number(1, axis)
    n, more = x.shape[axis], b.pick(((), (1,), (3,), (2, 2)))
    where = indices(b, -n, n - 1, *x.shape[:shared], *more)
    return b.op("Gather", x, where, b.const(np.int64(axis)), version="opset8", batch_dims=shared)


def _shape(b: Build, x: Value) -> Value:
    return b.op("ShapeOf", x, version="opset3", output_type="i64")


def sizes(b: Build, x: Value) -> Value:
    """The shape of a value, or numbers computed from it."""
    shape = _shape(b, x)
    if b.chance(0.4):
        return shape
    if b.chance(0.4):
        return _rounded(b, shape)
    type = b.pick(("Divide", "Mod", "FloorMod", "Multiply", "Add"))
    return b.op(type, shape, b.ints(b.number(1, 5)), auto_broadcast="numpy")


def _rounded(b: Build, shape: Value) -> Value:
    """Numbers computed in floats from sizes, and rounded."""
    x = b.op("Convert", shape, destination_type="f32")
    for _ in range(b.number(1, 3)):
        number = b.const(np.float32(b.pick((2, 3, 5, 0.5, 0.25, 1, 7))), et.f32)
        x = b.op(b.pick(("Divide", "Multiply", "Add", "Subtract")), x, number, auto_broadcast="numpy")
    x = b.op(b.pick(("Floor", "Ceiling")), x) if b.chance(0.7) else x
    return b.op("Convert", x, destination_type="i64")


def windowed(b: Build, x: Value) -> Value:
    """A map padded to multiples of a window, partitioned into windows and merged again, as in a Swin transformer."""
    edge = b.number(2, 4)
    shape, zero = _shape(b, x), b.const(np.int64(0))
    size = [b.op("Gather", shape, b.ints(k), zero, version="opset8", batch_dims=0) for k in range(4)]
    missing = [b.op("Subtract", b.ints(edge), b.op("FloorMod", n, b.ints(edge))) for n in size[2:]]
    ends = b.concat([b.ints(0, 0), *(b.op("FloorMod", n, b.ints(edge)) for n in missing)], 0)
    padded = b.op("Pad", x, b.ints(0, 0, 0, 0), ends, b.const(np.float32(0)), pad_mode="constant")
    whole = _shape(b, padded)
    counts = [
        b.op(
            "Floor",
            b.op("Divide", b.op("Gather", whole, b.ints(k), zero, version="opset8", batch_dims=0), b.ints(edge)),
        )
        for k in (2, 3)
    ]
    parts = b.concat([*size[:2], counts[0], b.ints(edge), counts[1], b.ints(edge)], 0)
    split = b.op("Reshape", padded, parts, special_zero=False)
    windows = b.op("ReLU", b.transpose(split, 0, 2, 4, 3, 5, 1))
    back = b.op("Reshape", b.transpose(windows, 0, 5, 1, 3, 2, 4), whole, special_zero=False)
    space = b.concat(size[2:], 0)
    return b.op("Slice", back, b.ints(0, 0), space, b.ints(1, 1), b.ints(2, 3), version="opset8")


def pad(b: Build, x: Value) -> Value:
    """A Pad in any mode."""
    mode = b.pick(("constant", "constant", "edge", "reflect", "symmetric"))
    most = [min(2, n - 1) if mode in ("reflect", "symmetric") else 2 for n in x.shape]
    begin = [b.number(0, m) if k or not b.dynamic else 0 for k, m in enumerate(most)]
    end = [b.number(0, m) if k or not b.dynamic else 0 for k, m in enumerate(most)]
    if b.chance(0.2) and x.shape[-1] > 3 and mode == "constant":
        end[-1] = -1
    value = (
        [b.const(np.float32(b.pick((0.0, 1.0, -2.0))).astype(x.element.dtype), x.element)]
        if mode == "constant" and b.chance(0.7)
        else []
    )
    version = "opset12" if min(end) < 0 else b.pick(("opset1", "opset12"))
    return b.op("Pad", x, b.ints(*begin), b.ints(*end), *value, version=version, pad_mode=mode)


def tile(b: Build, x: Value) -> Value:
    """A Tile."""
    if x.size > 1 << 14:
        raise DoesNotFit("large")
    return b.op("Tile", x, b.ints(*(b.pick((1, 1, 2)) if k or not b.dynamic else 1 for k in range(x.rank))))


def broadcast(b: Build, x: Value) -> Value:
    """A Broadcast of axes of length 1, or with new leading axes."""
    if x.size > 1 << 14:
        raise DoesNotFit("large")
    if b.chance(0.5) and x.rank < 5 and not b.dynamic:
        shape = [b.number(1, 3), *x.shape]
    else:
        shape = [n if n > 1 or not k else b.number(1, 4) for k, n in enumerate(x.shape)]
        if b.dynamic or shape == list(x.shape):
            raise DoesNotFit("nothing to repeat")
    mode = b.pick(("numpy", "bidirectional"))
    return b.op("Broadcast", x, b.ints(*shape), version="opset3", mode=mode)


def turned(b: Build, x: Value) -> Value:
    """A Roll or ReverseSequence."""
    if b.chance(0.5):
        return b.op("Roll", x, b.ints(b.number(-3, 3)), b.ints(b.number(0, x.rank - 1)), version="opset7")
    if x.rank < 2 or b.dynamic:
        raise DoesNotFit("no sequence")
    lengths = b.ints(*(b.number(1, x.shape[1]) for _ in range(x.shape[0])))
    return b.op("ReverseSequence", x, lengths, batch_axis=0, seq_axis=1)


def by_own_shape(b: Build, x: Value) -> Value:
    """A Reshape whose sizes are computed from the shape of its input, as exporters write them."""
    if x.rank < 3:
        raise DoesNotFit("few axes")
    shape = b.op("ShapeOf", x, version="opset3", output_type=b.pick(("i64", "i32")))
    zero = b.const(np.int64(0))
    first = b.op("Gather", shape, b.ints(0), zero, version="opset8", batch_dims=0)
    second = b.op("Gather", shape, b.ints(1), zero, version="opset8", batch_dims=0)
    rest = b.const(np.array([-1], second.element.dtype))
    sizes = b.op("Concat", first, second, rest, axis=0)
    return b.op("Reshape", x, sizes, special_zero=False)


def chosen_rows(b: Build, x: Value) -> Value:
    """The rows selected by a computed mask: a comparison that is always true, combined with a constant mask."""
    rows = x.shape[0]
    if x.rank < 2 or b.odd or not rows:
        raise DoesNotFit("no rows, or NaN")
    sums = b.op("ReduceSum", b.op("Abs", x), b.ints(*range(1, x.rank)), keep_dims=False)
    mask = b.op("GreaterEqual", sums, b.scalar(0.0), auto_broadcast="numpy")
    if not b.dynamic:
        kept = b.rng.random(rows) < 0.7
        mask = b.op("LogicalAnd", mask, b.const(kept, et.boolean), auto_broadcast="numpy")
        rows = int(kept.sum())
    where = b.selected("NonZero", (1, rows), mask, version="opset3", output_type="i64")
    return b.op("Gather", x, b.op("Squeeze", where, b.ints(0)), b.const(np.int64(0)), version="opset8", batch_dims=0)


def of_sizes(b: Build, x: Value) -> Value:
    """The input plus two vectors that are zero except for one element computed from the input's first dim."""
    if x.rank < 2:
        raise DoesNotFit("the axis may be dynamic")
    shape, n = b.op("ShapeOf", x, version="opset3", output_type="i64"), x.shape[-1]
    rows = b.op("Gather", shape, b.ints(0), b.const(np.int64(0)), version="opset8", batch_dims=0)
    by = b.op("Multiply", rows, b.ints(b.pick((-1, 2))), auto_broadcast="numpy")
    by = b.op(b.pick(("FloorMod", "Add")), by, b.ints(5), auto_broadcast="numpy")
    for _ in range(2):
        at = b.number(0, n - 1)
        vector = b.concat([by if k == at else b.ints(0) for k in range(n)], 0) if n > 1 else by
        x = b.add(x, b.op("Convert", vector, destination_type=b.element.name))
    return b.inexact(x)


def crossed(b: Build, x: Value) -> Value:
    """A Transpose and its inverse, with or without an elementwise layer between them."""
    order = [0, *(1 + int(k) for k in b.rng.permutation(x.rank - 1))] if x.rank > 1 else [0]
    y = b.transpose(x, *order)
    y = b.pick(((lambda: b.op("ReLU", y)), (lambda: b.mul(y, b.weights(y.shape[-1]))), (lambda: y)))()
    back = [order.index(k) for k in range(x.rank)]
    return b.transpose(y, *back)

"""Norms, softmax and reductions, as layers and written out."""

from __future__ import annotations

from math import prod

import numpy as np

from tests.fuzz.programs.build import Build, DoesNotFit, Value
from tests.fuzz.programs.operands import operand, small


def last_axes(b: Build, x: Value) -> tuple[int, ...]:
    """The axes of a norm: mostly the last one, sometimes more of the trailing ones."""
    count = b.pick((1, 1, 1, 2))
    axes = tuple(range(max(x.rank - count, 0), x.rank))
    if x.rank > 2 and b.chance(0.15):
        axes = tuple(range(2, x.rank)) if b.chance(0.5) else (b.number(1, x.rank - 1),)
    if prod(x.shape[a] for a in axes) < 2:
        raise DoesNotFit("a norm of one element")
    return axes


def scaled(b: Build, y: Value, shape: tuple[int, ...]) -> Value:
    """Scale and shift of a norm: constant, input or computed."""
    gamma = b.positive(*shape) if b.chance(0.6) else operand(b, y.shape)
    y = b.mul(y, gamma)
    return b.add(y, b.weights(*shape) if b.chance(0.6) else operand(b, y.shape)) if b.chance(0.7) else y


def layer_norm(b: Build, x: Value) -> Value:
    """A normalization over some axes, by MVN or in one of the decompositions that exporters write."""
    axes = last_axes(b, x)
    eps = b.pick((1e-5, 1e-6, 1e-3, 0.1, 1.0))
    shape = tuple(n if k in axes else 1 for k, n in enumerate(x.shape))
    roll = b.rng.random()
    if roll < 0.4:
        y = mvn(b, x, axes, eps)
    else:
        axes_input = b.ints(*axes)
        mean = b.op("ReduceMean", x, axes_input, keep_dims=True)
        middle = b.binary("Subtract", x, mean)
        square = b.pick(
            (
                (lambda: b.binary("Power", middle, b.scalar(2.0))),
                (lambda: b.mul(middle, middle)),
                (lambda: b.binary("SquaredDifference", x, mean)),
            )
        )()
        variance = b.op("ReduceMean", square, axes_input, keep_dims=True)
        plus = b.add(variance, b.scalar(eps))
        if b.chance(0.25) and len(axes) == 1:  # the scale folded into the reciprocal root
            root = (
                b.binary("Power", plus, b.scalar(-0.5))
                if b.chance(0.5)
                else b.binary("Divide", b.scalar(1.0), b.op("Sqrt", plus))
            )
            factor = b.mul(root, b.positive(*shape[-1:] if axes == (x.rank - 1,) else shape))
            left = b.mul(x, factor)
            right = b.binary("Subtract", b.weights(*shape), b.mul(mean, factor))
            return b.add(left, right)
        root = b.op("Sqrt", plus)
        if b.chance(0.5):
            y = b.binary("Divide", middle, root)
        else:
            y = b.mul(
                middle,
                b.binary("Divide", b.scalar(1.0), root) if b.chance(0.5) else b.binary("Power", plus, b.scalar(-0.5)),
            )
    return scaled(b, y, shape if b.chance(0.5) or axes != (x.rank - 1,) else shape[-1:]) if b.chance(0.7) else y


def mvn(b: Build, x: Value, axes: tuple[int, ...], eps: float) -> Value:
    """An MVN layer."""
    data = {
        "normalize_variance": b.chance(0.9),
        "eps": eps,
        "eps_mode": b.pick(("INSIDE_SQRT", "INSIDE_SQRT", "OUTSIDE_SQRT")),
    }
    if axes == tuple(range(2, x.rank)) and b.chance(0.4):
        del data["eps_mode"]
        axes_attribute = {"reduction_axes": ",".join(map(str, axes))} if b.chance(0.5) else {}
        return b.op("MVN", x, version="opset2", across_channels=False, **data, **axes_attribute)
    negative = b.chance(0.3)
    return b.op("MVN", x, b.ints(*(a - x.rank if negative else a for a in axes)), version="opset6", **data)


def rms_norm(b: Build, x: Value) -> Value:
    """A root mean square normalization, written out, or the layer."""
    axes = (x.rank - 1,)
    if x.shape[-1] < 2:
        raise DoesNotFit("a norm of one element")
    square = b.mul(x, x) if b.chance(0.5) else b.binary("Power", x, b.scalar(2.0))
    mean = b.op("ReduceMean", square, b.ints(*(a - x.rank if b.chance(0.3) else a for a in axes)), keep_dims=True)
    root = b.op("Sqrt", b.add(mean, b.scalar(b.pick((1e-6, 1e-3, 0.1)))))
    y = b.binary("Divide", x, root) if b.chance(0.5) else b.mul(x, b.binary("Divide", b.scalar(1.0), root))
    if b.chance(0.3):
        return b.mul(y, x)
    return scaled(b, y, x.shape[-1:]) if b.chance(0.7) else y


def group_norm(b: Build, x: Value) -> Value:
    """A GroupNormalization, the layer or as Reshape, MVN, Reshape."""
    if x.rank < 3:
        raise DoesNotFit("no spatial axes")
    n, c, *rest = x.shape
    groups = b.pick([g for g in range(1, c + 1) if c % g == 0])
    if c // groups * prod(rest) < 2:
        raise DoesNotFit("a norm of one element")
    if b.chance(0.5):
        return b.op(
            "GroupNormalization", x, b.positive(c), b.weights(c), version="opset12", num_groups=groups, epsilon=1e-3
        )
    flat = b.reshape(x, n, groups, -1)
    y = b.reshape(mvn(b, flat, (2,), 1e-3), *x.shape)
    column = (1, c, *(1,) * len(rest))
    return b.add(b.mul(y, b.positive(*column)), b.weights(*column))


def a_channel(b: Build, x: Value, values: Value) -> Value:
    """Per-channel numbers of x, [1,C,1…]: constant, or an input that is reshaped, as exporters of ONNX write them."""
    column = (1, x.shape[1], *(1,) * (x.rank - 2))
    if b.chance(0.6):
        return b.reshape(values, *column) if b.chance(0.2) else b.weights(*column)
    parameter = b.parameter((x.shape[1],))
    if b.chance(0.5):
        return b.op("Reshape", parameter, b.ints(*column), special_zero=False)
    return b.op("Unsqueeze", parameter, b.ints(0, *range(2, x.rank)))


def instance_norm(b: Build, x: Value) -> Value:
    """A normalization of each channel of each sample, written out or by MVN, with epsilons of any size."""
    if x.rank < 3 or prod(x.shape[2:]) < 2:
        raise DoesNotFit("no spatial axes")
    axes = tuple(range(2, x.rank))
    eps = b.pick((1e-5, 1e-2, 1.0))
    scale, shift = b.positive(x.shape[1]), b.weights(x.shape[1])
    if b.chance(0.5):
        y = mvn(b, x, axes, eps)
    else:
        mean = b.op("ReduceMean", x, b.ints(*axes), keep_dims=True)
        middle = b.binary("Subtract", x, mean)
        variance = b.op("ReduceMean", b.mul(middle, middle), b.ints(*axes), keep_dims=True)
        y = b.binary("Divide", middle, b.op("Sqrt", b.add(variance, b.scalar(eps))))
    return b.add(b.mul(y, a_channel(b, x, scale)), a_channel(b, x, shift)) if b.chance(0.8) else y


def unit_length(b: Build, x: Value) -> Value:
    """A division by the Euclidean norm, written out or by NormalizeL2."""
    axes = last_axes(b, x)
    if b.chance(0.4):
        return b.op("NormalizeL2", x, b.ints(*axes), eps=1e-3, eps_mode=b.pick(("add", "max")))
    length = b.op("ReduceL2", x, b.ints(*axes), version="opset4", keep_dims=True)
    return b.binary("Divide", x, b.add(length, b.scalar(0.5)))


def softmax(b: Build, x: Value) -> Value:
    """A Softmax or LogSoftmax along any axis, or written out."""
    axis = b.number(0, x.rank - 1)
    roll = b.rng.random()
    if roll < 0.6:
        return b.op("Softmax", x, version="opset8", axis=axis - x.rank if b.chance(0.3) else axis)
    if roll < 0.7:
        return b.op("LogSoftmax", x, version="opset5", axis=axis)
    if b.odd:
        raise DoesNotFit("infinite")
    shifted = b.binary("Subtract", x, b.op("ReduceMax", x, b.ints(axis), keep_dims=True))
    e = b.op("Exp", shifted)
    return b.binary("Divide", e, b.op("ReduceSum", e, b.ints(axis), keep_dims=True))


def reduced(b: Build, x: Value) -> Value:
    """A reduction over any axes, kept or dropped."""
    axes = sorted(int(a) for a in b.rng.permutation(x.rank)[: b.number(1, min(x.rank, 3))])
    if b.dynamic and x.rank > 1:
        axes = [a for a in axes if a] or [x.rank - 1]
    kind = b.pick(
        ("ReduceMean", "ReduceMean", "ReduceMax", "ReduceSum", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceProd")
    )
    x = b.op("Clamp", x, min=-1.25, max=1.25) if kind == "ReduceProd" else x
    version = "opset4" if kind in ("ReduceL1", "ReduceL2") else "opset1"
    y = b.op(
        kind, x, b.ints(*(a - x.rank if b.chance(0.2) else a for a in axes)), version=version, keep_dims=b.chance(0.5)
    )
    return small(b, y) if kind in ("ReduceSum", "ReduceL1") else y


def cumulative(b: Build, x: Value) -> Value:
    """A CumSum."""
    axis = b.const(np.int64(b.number(0, x.rank - 1)))
    return small(
        b, b.op("CumSum", b.bounded(x), axis, version="opset3", exclusive=b.chance(0.3), reverse=b.chance(0.3))
    )


def chosen_largest(b: Build, x: Value) -> list[Value]:
    """A TopK of exact values."""
    if x.exact is None or b.odd:
        raise DoesNotFit("rounding decides which")
    axis = b.number(0, x.rank - 1)
    k = b.const(np.int64(b.number(1, x.shape[axis])))
    data = {"axis": axis, "mode": b.pick(("max", "min")), "sort": "value", "index_element_type": "i64", "stable": True}
    return b.many("TopK", x, k, version="opset11", **data)[:1]


def spatial_mean(b: Build, x: Value) -> Value:
    """A mean or maximum over some of the spatial axes of a channels-last map."""
    if not 3 <= x.rank <= 5 or x.element is not b.element:
        raise DoesNotFit("no spatial axes")
    axes = [a for a in range(2, x.rank) if b.chance(0.6)] or [b.number(2, x.rank - 1)]
    return b.op(
        b.pick(("ReduceMean", "ReduceMax", "ReduceMean", "ReduceMin")), x, b.ints(*axes), keep_dims=b.chance(0.6)
    )

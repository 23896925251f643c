"""Elementwise layers, and activations composed of primitive operations."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.fuzz.programs.build import Build, Value
from tests.fuzz.programs.operands import operand, recent_value

EXACT = ("ReLU", "Abs", "Negative", "Floor", "Ceiling", "Round", "ReLU", "Clamp", "Relu6")
SMOOTH = (
    "Sigmoid",
    "Tanh",
    "HSwish",
    "Mish",
    "SoftPlus",
    "Gelu",
    "GeluTanh",
    "Elu",
    "HSigmoid",
    "Swish",
    "Sin",
    "Cos",
    "Erf",
    "Exp",
    "Log",
    "Sqrt",
    "Selu",
    "SoftSign",
    "HardSigmoid",
    "SwishBeta",
)


def unary(b: Build, x: Value) -> Value:
    """Append a unary function."""
    sums = x.exact is not None
    name = b.pick(EXACT if b.chance(0.7 if b.dyadic and sums else 0.3) else SMOOTH)
    if name in ("Floor", "Ceiling", "Round") and not sums:
        name = "ReLU"  # rounding errors before them could change their results by 1
    if name == "Clamp":
        low = b.pick((-1.0, 0.0, -0.5, -3.0))
        return b.op("Clamp", x, min=low, max=b.pick((0.5, 1.0, 6.0)))
    if name == "Relu6":
        return b.op("Clamp", b.op("ReLU", x) if b.chance(0.3) else x, min=0.0, max=6.0)
    if name == "Exp":
        return b.op("Exp", b.op("Clamp", x, min=-5.0, max=1.0))
    if name in ("Log", "Sqrt"):
        return b.op(name, b.add(b.op("Abs", x), b.scalar(0.5)))
    if name == "Gelu":
        return b.op("Gelu", x, version=b.pick(("opset2", "opset7")))
    if name == "GeluTanh":
        return b.op("Gelu", x, version="opset7", approximation_mode="tanh")
    if name == "Elu":
        return b.op("Elu", x, alpha=b.pick((1.0, 0.5)))
    if name == "Selu":
        return b.op("Selu", x, b.scalar(1.67), b.scalar(1.05))
    if name == "HardSigmoid":
        return b.op("HardSigmoid", x, b.const(np.float32(0.25)), b.const(np.float32(0.5)))
    if name in ("Swish", "SwishBeta"):
        slope = [b.const(np.float32(b.pick((1.0, 1.5))))] if name == "SwishBeta" else []
        return b.op("Swish", x, *slope, version="opset4")
    versions = {**dict.fromkeys(("HSwish", "Mish", "SoftPlus"), "opset4"), "SoftSign": "opset9"}
    versions |= dict.fromkeys(("HSigmoid", "Round"), "opset5")
    return b.op(name, x, version=versions.get(name, "opset1"))


def written_out(b: Build, x: Value) -> Value:
    """GELU, Swish, HSwish, Mish and others as primitive operations grouped in different ways; also near misses."""
    kind = b.pick(
        ("gelu", "gelu", "swish", "swish", "hswish", "mish", "tanh gelu", "softplus", "hsigmoid", "leaky", "tanh")
    )
    x = b.op("Clamp", x, min=-6.0, max=6.0) if kind in ("mish", "softplus") else x
    other = x if b.chance(0.9) else recent_value(b, lambda v: v.shape == x.shape and v.element is b.element)
    if kind == "gelu":
        inner = b.op(
            "Erf", b.mul(x, b.scalar(0.70710678)) if b.chance(0.5) else b.binary("Divide", x, b.scalar(1.4142135))
        )
        half = b.add(inner, b.scalar(1.0))
        if b.chance(0.5):
            return b.mul(b.mul(other, half), b.scalar(0.5))
        return b.mul(b.mul(other, b.scalar(0.5)), half)
    if kind == "tanh gelu":
        cube = b.binary("Power", x, b.scalar(3.0)) if b.chance(0.5) else b.mul(b.mul(x, x), x)
        inner = b.mul(b.add(x, b.mul(cube, b.scalar(0.044715))), b.scalar(0.7978845608))
        return b.mul(b.mul(b.add(b.op("Tanh", inner), b.scalar(1.0)), b.scalar(0.5)), other)
    if kind == "swish":
        inner = x if b.chance(0.6) else b.mul(x, b.scalar(1.702))
        return b.mul(other, b.op("Sigmoid", inner))
    if kind == "hswish":
        inner = b.op("Clamp", b.add(x, b.scalar(3.0)), min=0.0, max=6.0)
        return (
            b.mul(other, b.mul(inner, b.scalar(1 / 6)))
            if b.chance(0.5)
            else b.binary("Divide", b.mul(other, inner), b.scalar(6.0))
        )
    if kind == "mish":
        return b.mul(other, b.op("Tanh", b.op("Log", b.add(b.op("Exp", x), b.scalar(1.0)))))
    if kind == "softplus":
        return b.op("Log", b.add(b.op("Exp", x), b.scalar(1.0)))
    if kind == "hsigmoid":
        return b.mul(b.op("Clamp", b.add(other, b.scalar(3.0)), min=0.0, max=6.0), b.scalar(1 / 6))
    if kind == "leaky":
        return b.binary("Maximum", x, b.mul(other, b.scalar(0.25)))
    return b.add(b.op("Tanh", x), other)


def binary(b: Build, x: Value) -> Value:
    """An elementwise operation in which the other operand or x is broadcast."""
    names = ("Add", "Add", "Multiply", "Subtract", "Maximum", "Minimum", "SquaredDifference", "Divide")
    name = b.pick(names)
    x = b.bounded(x)
    if name == "Divide":
        other = operand(b, x.shape, x)
        return b.binary(name, x, b.add(b.op("Abs", other), b.scalar(1.0)))
    if b.chance(0.12) and 1 in x.shape:  # x is broadcast
        wide = tuple(n if n > 1 or b.chance(0.4) else b.number(2, 4) for n in x.shape)
        other = b.parameter(wide)
    else:
        other = operand(b, x.shape, x)
    if name == "SquaredDifference" and not b.dyadic:
        other = b.op("Tanh", other)
    value = b.binary(name, *((x, other) if b.chance(0.7) else (other, x)))
    return b.bounded(value)


def two_of_pool(b: Build, x: Value) -> Value:
    """A sum, product or similar of x and an existing value of its shape: residuals, diamonds, gates."""
    other = recent_value(b, lambda v: v.shape == x.shape and v.element is x.element)
    name = b.pick(("Add", "Add", "Add", "Multiply", "Subtract", "Maximum"))
    return b.bounded(b.binary(name, b.bounded(x), b.bounded(other)))


def broadcast_of_pool(b: Build, x: Value) -> Value:
    """A sum, product or similar of x and an existing value of another shape that broadcasts with it."""

    def fits(v: Value) -> bool:
        return v.element is x.element and v.shape != x.shape and _broadcasts(v.shape, x.shape)

    other = recent_value(b, fits)
    return b.bounded(b.binary(b.pick(("Add", "Multiply", "Subtract", "Minimum")), b.bounded(x), b.bounded(other)))


def _broadcasts(one: tuple[int, ...], two: tuple[int, ...]) -> bool:
    pairs = zip(one[::-1], two[::-1], strict=False)
    return all(1 in pair or pair[0] == pair[1] for pair in pairs)


def prelu(b: Build, x: Value) -> Value:
    """A PReLU with one slope per channel or a single slope, including negative slopes."""
    if x.rank < 2:
        return b.op("ReLU", x)
    count = x.shape[1] if b.chance(0.7) else 1
    slope = b.weights(count) if b.chance(0.3) else b.const(np.full(count, 0.25, np.float32))
    return b.op("PRelu" if b.chance(0.0) else "PReLU", x, slope)


def chosen(b: Build, x: Value) -> Value:
    """A Select whose condition is a comparison of exact values or an input."""
    shape = tuple(n if b.chance(0.6) else 1 for n in x.shape)
    if x.exact is not None and b.chance(0.5):
        condition = b.op(b.pick(("Greater", "LessEqual", "NotEqual")), x, b.scalar(0.5), auto_broadcast="numpy")
    else:
        condition = b.parameter(shape, et.boolean)
    return b.op("Select", condition, x, operand(b, x.shape), auto_broadcast="numpy")

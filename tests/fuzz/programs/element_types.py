"""Blocks in other element types, and quantization: FakeQuantize, compressed weights, f16 and bf16."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.tensor import Array
from tests.fuzz.programs.build import Build, DoesNotFit, Value
from tests.fuzz.programs.exact import Exact
from tests.fuzz.programs.windows import geometry, spatial


def fake_quantize(b: Build, x: Value) -> Value:
    """A FakeQuantize of exact values, so that only FakeQuantize's arithmetic decides the level."""
    if x.exact is None or x.exact.grain > 20 or b.odd:
        raise DoesNotFit("rounding decides the step")
    levels = b.pick((17, 257, 5))
    per_channel = x.rank > 1 and b.chance(0.4)
    shape = (1, x.shape[1], *(1,) * (x.rank - 2)) if per_channel else b.pick(((), (1,), (1,) * x.rank))

    def bound(values: tuple[float, ...]) -> Value:
        return b.const(np.asarray(b.rng.choice(values, shape)).astype(np.float32))

    low_is_zero = b.chance(0.5)
    low = b.const(np.full(shape, 0.0 if low_is_zero else -2.0, np.float32))
    high = bound((2.0, 4.0) if low_is_zero else (2.0, 6.0))
    out_low = b.const(np.full(shape, b.pick((0.0, -1.0)), np.float32))
    out_high = bound((1.0, 3.0)) if b.chance(0.3) else b.const(np.full(shape, 3.0, np.float32))
    y = b.op("FakeQuantize", x, low, high, out_low, out_high, levels=levels, auto_broadcast="numpy")
    return b.inexact(y)


def step_function(b: Build, x: Value) -> Value:
    """Binarisation: two levels."""
    if x.exact is None or b.odd:
        raise DoesNotFit("rounding decides the step")
    bounds = [b.const(np.float32(v)) for v in (0.25, 0.25, -1.0, 1.0)]
    return b.inexact(b.op("FakeQuantize", x, *bounds, levels=2, auto_broadcast="numpy"))


CODES = (et.i8, et.u8, et.i4, et.u4, et.nf4, et.f4e2m1, et.f8e4m3, et.f8e5m2)
"""The element types of compressed weights."""


def compressed_weights(b: Build, shape: tuple[int, ...], axis: int) -> Value:
    """Weights of 8 or 4 bits with a scale, and perhaps a zero point, per channel, or per group of a matrix."""
    element = b.pick(CODES)
    groups = b.pick([n for n in (1, 2, 3, 4) if shape[-1] % n == 0]) if len(shape) == 2 and axis == 0 else 1
    split = (*shape[:-1], groups, shape[-1] // groups) if groups > 1 else shape
    column = tuple(n if k == axis or (groups > 1 and k == 1) else 1 for k, n in enumerate(split))
    wide = _decoded(b, _codes(b, element, split), element)
    if element.kind != "float" and (not element.is_signed or b.chance(0.3)):
        zero = np.full(column, 1 if element.is_signed else 3).astype(element.dtype)
        wide = b.binary("Subtract", wide, _decoded(b, zero, element))
    scale = b.const((2.0 ** b.rng.integers(-3, -1, column)).astype(np.float32))
    weights = b.op("Multiply", wide, scale, auto_broadcast="numpy")
    return weights if groups == 1 else b.op("Reshape", weights, b.ints(*shape), special_zero=False)


def _decoded(b: Build, codes: Array, element: et.ElementType) -> Value:
    return b.op("Convert", b.const(codes, element), destination_type=b.element.name)


def _codes(b: Build, element: et.ElementType, shape: tuple[int, ...]) -> Array:
    """Small integers that the type represents: −1, 0 and 1 for floats, because nf4 has no other integers."""
    low, high = (-1, 2) if element.kind == "float" else (-3, 4) if element.is_signed else (0, 7)
    return b.rng.integers(low, high, shape).astype(np.float32).astype(element.dtype)


def quantized_convolution(b: Build, x: Value) -> Value:
    """A convolution of compressed weights."""
    axes, c = spatial(x), x.shape[1]
    kernel, data = geometry(b, b.bounded(x))
    assert axes
    return b.op("Convolution", b.bounded(x), compressed_weights(b, (b.pick((4, 6, 8)), c, *kernel), 0), **data)


def quantized_linear(b: Build, x: Value) -> Value:
    """A MatMul of compressed weights."""
    n = b.pick((4, 6, 16))
    return b.bounded(
        b.op("MatMul", b.bounded(x), compressed_weights(b, (n, x.shape[-1]), 0), transpose_a=False, transpose_b=True)
    )


def half_weights(b: Build, x: Value) -> Value:
    """A MatMul of f16 or bf16 weights, converted."""
    element = b.pick((et.f16, et.bf16))
    wide = b.op("Convert", b.weights(x.shape[-1], 4, fan=x.shape[-1], element=element), destination_type=b.element.name)
    return b.op("MatMul", b.bounded(x), wide, transpose_a=False, transpose_b=False)


def half_piece(b: Build, x: Value) -> Value:
    """A few layers in f16 or bf16 between Converts."""
    element = b.pick((et.f16, et.f16, et.bf16))
    y = b.op("Convert", x, destination_type=element.name)
    column = y.shape[-1:]
    for _ in range(b.number(1, 3)):
        roll = b.rng.random()
        if roll < 0.25:
            y = b.op("Add", y, b.weights(*column, element=element), auto_broadcast="numpy")
        elif roll < 0.45:
            y = b.op("Multiply", y, b.weights(*column, element=element), auto_broadcast="numpy")
        elif roll < 0.6:
            y = b.op(b.pick(("ReLU", "Sigmoid", "Tanh")), y)
        elif roll < 0.7 and y.rank > 1:
            y = b.transpose(y, *range(y.rank - 2), y.rank - 1, y.rank - 2)
            column = y.shape[-1:]
        elif roll < 0.8:
            y = b.concat([y, y], y.rank - 1) if y.rank else y
            column = y.shape[-1:]
        elif roll < 0.9:
            y = b.op(
                "MatMul",
                y,
                b.weights(y.shape[-1], 4, fan=y.shape[-1], element=element),
                transpose_a=False,
                transpose_b=False,
            )
            column = y.shape[-1:]
        else:
            y = b.op("ReduceMean", y, b.ints(-1), keep_dims=True)
            column = (1,)
    return b.op("Convert", y, destination_type=b.element.name)


def through_integers(b: Build, x: Value) -> Value:
    """Exact values converted to integers, some arithmetic, and a conversion back."""
    if x.exact is None or x.exact.grain > 20 or b.odd:
        raise DoesNotFit("rounding decides")
    y = b.op("Convert", b.op("Floor", x), destination_type=b.pick(("i32", "i64")))
    largest = abs(x.exact.largest) + 1
    for _ in range(b.number(1, 3)):
        y, largest = _whole(b, y, largest)
    return _known(b, b.op("Convert", y, destination_type=b.element.name), Exact(0, largest))


def _whole(b: Build, x: Value, largest: float) -> tuple[Value, float]:
    """An operation on integers of at most this magnitude, and the greatest magnitude of its results."""
    n = b.number(1, 5)
    number = b.const(np.full((1,) * b.pick((0, 1)), n).astype(x.element.dtype), x.element)
    with_number = {
        "Add": ("opset1", largest + n),
        "Multiply": ("opset1", largest * n),
        "Maximum": ("opset1", max(largest, n)),
        "Divide": ("opset1", largest),
        "FloorMod": ("opset1", n),
        "Mod": ("opset1", n),
        "SquaredDifference": ("opset1", (largest + n) ** 2),
        "BitwiseAnd": ("opset13", n),
        "BitwiseOr": ("opset13", largest + n),
        "BitwiseXor": ("opset13", largest + n),
        "BitwiseLeftShift": ("opset15", largest * 2**n),
        "BitwiseRightShift": ("opset15", largest),
    }
    alone = {
        "Abs": ("opset1", largest),
        "BitwiseNot": ("opset13", largest + 1),
        "Clamp": ("opset1", 7),
        "Floor": ("opset1", largest),
        "Negative": ("opset1", largest),
        "ReLU": ("opset1", largest),
        "Sign": ("opset1", 1),
    }
    if x.rank and not b.dynamic and b.chance(0.15):
        axis = b.number(0, x.rank - 1)
        reduced = b.op(b.pick(("ReduceSum", "ReduceMax", "ReduceMin")), x, b.ints(axis), keep_dims=True)
        return b.op("Subtract", x, reduced, auto_broadcast="numpy"), largest * (x.shape[axis] + 1)
    name = b.pick((*with_number, *alone))
    if name in alone:
        version, greatest = alone[name]
        bounds = {"min": -2.5, "max": 6.5} if name == "Clamp" else {}
        return b.op(name, x, version=version, **bounds), greatest
    version, greatest = with_number[name]
    division = {"m_pythondiv": True} if name == "Divide" else {}
    return b.op(name, x, number, version=version, auto_broadcast="numpy", **division), greatest


def _known(b: Build, value: Value, exact: Exact) -> Value:
    return replace(value, exact=exact if exact.fits(value.element) else None)


def logical(b: Build, x: Value) -> Value:
    """Comparisons of exact values, combined, converted to numbers."""
    if x.exact is None:
        raise DoesNotFit("rounding decides")
    data: dict[str, Any] = {"auto_broadcast": "numpy"}
    one = b.op("Greater", x, b.scalar(0.25), **data)
    two = b.op("Less", x, b.scalar(1.25), **data)
    both = b.op(
        b.pick(("LogicalAnd", "LogicalOr", "LogicalXor")),
        one,
        b.op("LogicalNot", two) if b.chance(0.3) else two,
        **data,
    )
    return _known(b, b.op("Convert", both, destination_type=b.element.name), Exact(0, 1))

"""Builders of small graphs: `of("ReLU", 3, 4)(net)` adds a ReLU of a 3×4 input and returns its output."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from models import ir
from models.ir import Ref
from tests.plan.graphs import Net

Build = Callable[[Net], ir.Ref]

MVN = {"version": "opset6", "eps": 1e-5, "eps_mode": "inside_sqrt", "normalize_variance": True}


def of(type: str, *shape: int, **attributes: object) -> Build:
    """An operation on one input."""
    return lambda net: net.op(type, net.input(*shape), **attributes)


def with_constant(type: str, shape: tuple[int, ...], constant: object, **attributes: object) -> Build:
    """An operation on one input and a constant."""
    return lambda net: net.op(type, net.input(*shape), net.constant(constant), **attributes)


def mvn(shape: tuple[int, ...], axes: list[int], **attributes: object) -> Build:
    """MVN-6."""
    return with_constant("MVN", shape, axes, **{**MVN, **attributes})


def interpolate(version: str, shape: tuple[int, ...], *operands: object, **attributes: object) -> Build:
    """An Interpolate whose sizes, scales and axes are constants."""
    return lambda net: net.op(
        "Interpolate", net.input(*shape), *(net.constant(t) for t in operands), version=version, **attributes
    )


FOUR = {
    "mode": "linear_onnx", "shape_calculation_mode": "sizes", "coordinate_transformation_mode": "half_pixel",
    "nearest_mode": "floor", "antialias": False, "pads_begin": "0,0,0,0", "pads_end": "0,0,0,0", "cube_coeff": -0.75,
}  # fmt: skip
SCALES = np.float32([2.0, 1.5])


def sequence(
    type: str, gates: int, *, directions: int = 1, lengths: int = 4, bias: int = 0, **attributes: object
) -> Build:
    """A recurrent sequence: batch 2, up to 4 steps, input size 3, hidden size 5. Returns all outputs in one tensor."""

    def build(net: Net) -> ir.Ref:
        x, size = net.input(2, 4, 3), 5
        states = [net.input(2, directions, size) for _ in range(2 if type == "LSTMSequence" else 1)]
        w, r = net.weights(directions, gates * size, 3), net.weights(directions, gates * size, size)
        b = net.weights(directions, (bias or gates) * size)
        direction = {1: "forward", 2: "bidirectional"}[directions]
        options = {"hidden_size": size, "direction": direction, **attributes}
        operands = [net.constant([lengths, lengths]), w, r, b]
        outputs = net.ops(type, x, *states, *operands, version="opset5", outputs=len(states) + 1, **options)
        return net.concat(*(net.reshape(o, -1) for o in outputs), axis=0)

    return build


def attention(*more: Callable[[Net], ir.Ref], causal: bool = False, shape: tuple[int, ...] = (2, 3, 4, 8)) -> Build:
    """ScaledDotProductAttention, optionally with a mask and a scale."""
    return lambda net: net.op(
        "ScaledDotProductAttention", *(net.input(*shape) for _ in range(3)), *(m(net) for m in more),
        version="opset13", causal=causal,
    )  # fmt: skip


def batch_norm(version: str, shape: tuple[int, ...], variance: float = 2.0) -> Build:
    """BatchNormInference; opset1 orders the inputs differently."""

    def build(net: Net) -> ir.Ref:
        x, c = net.input(*shape), shape[1]
        g, b, m = (net.weights(c) for _ in range(3))
        v = net.constant(np.linspace(0.5, variance, c, dtype=np.float32))
        inputs = (g, b, x, m, v) if version == "opset1" else (x, g, b, m, v)
        return net.op("BatchNormInference", *inputs, version=version, epsilon=0.001)

    return build


def power(exponent: float, shape: tuple[int, ...] = (1,)) -> Build:
    """Power of a positive input with a constant exponent."""
    return lambda net: net.op(
        "Power", net.op("Exp", net.input(2, 3)), net.constant(np.full(shape, exponent, np.float32))
    )


def quantize(*bounds: object, levels: int = 256, **attributes: object) -> Build:
    return lambda net: net.op(
        "FakeQuantize", net.input(2, 3, 4), *(net.constant(np.float32(b)) for b in bounds), levels=levels, **attributes
    )


def fake_convert(destination: str, *constants: object) -> Build:
    """FakeConvert of [2, 3, 4] with a scale and, optionally, a shift."""
    return lambda net: net.op(
        "FakeConvert",
        net.input(2, 3, 4),
        *(net.constant(np.float32(c)) for c in constants),
        version="opset13",
        destination_type=destination,
    )


def clamped(net: Net, low: float, high: float, *shape: int) -> Ref:
    """Integers from `low` to `high`, by default [3, 4, 5]."""
    nine = net.constant(np.float32(9))
    whole = net.op("Convert", net.op("Multiply", net.input(*shape or (3, 4, 5)), nine), destination_type="i64")
    return net.op("Convert", net.op("Clamp", whole, min=low, max=high), destination_type="i32")

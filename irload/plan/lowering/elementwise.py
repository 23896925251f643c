"""Lowerings of elementwise operations to expressions of one or a few instructions, which passes fuse."""

from __future__ import annotations

import numpy as np

from irload.graph import Node
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ElementwiseStep, ReshapeStep
from irload.plan.lowering.values import all_f32, scalar
from irload.plan.wide import SHORT

UNARY = {
    "ReLU": "relu",
    "Sigmoid": "sigmoid",
    "HSwish": "hard_swish",
    "Exp": "exp",
    "Log": "log",
    "Tanh": "tanh",
    "Sqrt": "sqrt",
    "Negative": "negative",
    "Abs": "abs",
    "Sin": "sin",
    "Cos": "cos",
    "Floor": "floor",
    "Ceiling": "ceil",
    "Erf": "erf",
    "Mish": "mish",
    "SoftPlus": "softplus",
}
BINARY = {
    "Add": "add",
    "Subtract": "subtract",
    "Multiply": "multiply",
    "Divide": "divide",
    "Maximum": "maximum",
    "Minimum": "minimum",
}


def _elementwise(inputs: list[Value], outputs: list[Value], *instructions: Instruction) -> ElementwiseStep:
    return ElementwiseStep(inputs, outputs, expression=Expression(len(inputs), instructions))


def unary(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a function of one operand."""
    if not all_f32([*inputs, *outputs]):
        return None
    return _elementwise(inputs, outputs, Instruction(UNARY[node.type], (0,)))


def binary(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a function of two operands."""
    if not all_f32([*inputs, *outputs]) or node.op.attributes["auto_broadcast"] == "pdpd":
        return None
    return _elementwise(inputs, outputs, Instruction(BINARY[node.type], (0, 1)))


def squared_difference(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower (a − b)²."""
    if not all_f32([*inputs, *outputs]) or node.op.attributes["auto_broadcast"] == "pdpd":
        return None
    return _elementwise(inputs, outputs, Instruction("subtract", (0, 1)), Instruction("square", (2,)))


def power(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a power; square and sqrt have dedicated instructions."""
    base, exponent = inputs
    if not all_f32([*inputs, *outputs]) or node.op.attributes["auto_broadcast"] == "pdpd":
        return None
    number = scalar(exponent)
    if number is None or base.shape != outputs[0].shape:
        return _elementwise(inputs, outputs, Instruction("power", (0, 1)))
    special = {2.0: "square", 0.5: "sqrt"}.get(number)
    instruction = Instruction(special, (0,)) if special else Instruction("power_number", (0,), (number,))
    return _elementwise([base], outputs, instruction)


def convert(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower conversions between f32 and 16-bit floats, which are f32 in programs, and conversions to the same type.

    Types of fewer than 4 bytes are excluded, because different element types, such as i4 and i8, share one dtype.
    """
    dtype = inputs[0].dtype
    if dtype != outputs[0].dtype or dtype.itemsize < 4:
        return None
    source, target = node.inputs[0].type.element, node.outputs[0].type.element
    if target.bits >= 32 or source == target:
        return ReshapeStep(inputs[:1], outputs)
    if target.dtype not in SHORT:
        return None  # nf4, whose values are stored as f32
    return _elementwise(inputs[:1], outputs, Instruction(f"round_{target}", (0,)))


def clamp(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower x clamped to min..max."""
    if not all_f32([*inputs, *outputs]):
        return None
    bounds = (node.op.attributes["min"], node.op.attributes["max"])
    return _elementwise(inputs, outputs, Instruction("clamp", (0,), bounds))


def swish(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower x · sigmoid(beta · x)."""
    slope = scalar(inputs[1]) if len(inputs) > 1 else 1.0
    if slope is None or not all_f32([*inputs, *outputs]):
        return None
    return _elementwise(inputs[:1], outputs, Instruction("swish", (0,), () if slope == 1 else (slope,)))


def leaky_relu(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower PReLU with constant finite slopes: x if x > 0, else slope · x; as max(x, slope · x) if that is equal."""
    x, slope = inputs
    array = slope.constant
    if array is None or not all_f32([*inputs, *outputs]) or not np.isfinite(array).all():
        return None
    if array.ndim == 1 and len(x.shape) > 1 and x.shape[1] == array.size:
        array = array.reshape(array.shape + (1,) * (len(x.shape) - 2))
    operands = [x, Value.of(array, slope.name)]
    if np.all((array > 0) & (array <= 1)):
        return _elementwise(operands, outputs, Instruction("multiply", (0, 1)), Instruction("maximum", (0, 2)))
    parts = (Instruction("relu", (0,)), Instruction("minimum_number", (0,), (0.0,)), Instruction("multiply", (3, 1)))
    return _elementwise(operands, outputs, *parts, Instruction("add", (2, 4)))


def gelu(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower GELU, exact or with tanh."""
    if not all_f32([*inputs, *outputs]):
        return None
    tanh = node.op.attributes.get("approximation_mode") == "tanh"
    return _elementwise(inputs, outputs, Instruction("gelu_tanh" if tanh else "gelu", (0,)))


def hard_sigmoid_six(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower min(max(x + 3, 0), 6) / 6."""
    if not all_f32([*inputs, *outputs]):
        return None
    return _elementwise(inputs, outputs, Instruction("hard_sigmoid", (0,), (1 / 6, 0.5)))


def hard_sigmoid(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower clip(alpha · x + beta, 0, 1)."""
    alpha, beta = scalar(inputs[1]), scalar(inputs[2])
    if alpha is None or beta is None or not all_f32([*inputs, *outputs]):
        return None
    return _elementwise(inputs[:1], outputs, Instruction("hard_sigmoid", (0,), (alpha, beta)))


def selu(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower Selu: lambda · Elu(x)."""
    alpha, factor = scalar(inputs[1]), scalar(inputs[2])
    if alpha is None or factor is None or not all_f32([*inputs, *outputs]):
        return None
    scaled = Instruction("multiply_number", (1,), (factor,))
    return _elementwise(inputs[:1], outputs, Instruction("elu", (0,), (alpha,)), scaled)


def soft_sign(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower x / (1 + |x|)."""
    if not all_f32([*inputs, *outputs]):
        return None
    grown = Instruction("abs", (0,)), Instruction("add_number", (1,), (1.0,))
    return _elementwise(inputs, outputs, *grown, Instruction("divide", (0, 2)))


def rounding(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower Round of halves to even."""
    if node.op.attributes["mode"] != "half_to_even" or not all_f32([*inputs, *outputs]):
        return None
    return _elementwise(inputs, outputs, Instruction("round", (0,)))


def elu(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower Elu: x if x > 0, else alpha · (eˣ − 1)."""
    if not all_f32([*inputs, *outputs]):
        return None
    return _elementwise(inputs, outputs, Instruction("elu", (0,), (node.op.attributes["alpha"],)))

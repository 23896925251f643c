"""Lowerings of elementwise operations to expressions of one or a few instructions, which passes fuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irload.graph import Node
from irload.plan.ir.expression import Expression, Instruction, expression_of
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ElementwiseStep, ReshapeStep
from irload.plan.lowering.values import all_f32, scalar
from irload.plan.wide import SHORT

OPCODES = {
    "Abs": "abs",
    "Add": "add",
    "Ceiling": "ceil",
    "Cos": "cos",
    "Divide": "divide",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "HSwish": "hard_swish",
    "Log": "log",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Mish": "mish",
    "Multiply": "multiply",
    "Negative": "negative",
    "ReLU": "relu",
    "Sigmoid": "sigmoid",
    "Sin": "sin",
    "SoftPlus": "softplus",
    "Sqrt": "sqrt",
    "Subtract": "subtract",
    "Tanh": "tanh",
}
"""Operations that are one instruction."""

EXPRESSIONS: Mapping[str, Callable[[Mapping[str, Any]], Expression | None]] = {
    **{name: lambda known, opcode=opcode: expression_of(opcode) for name, opcode in OPCODES.items()},
    "Clamp": lambda known: expression_of("clamp", known["min"], known["max"]),
    "Elu": lambda known: expression_of("elu", known["alpha"]),
    "Gelu": lambda known: expression_of("gelu_tanh" if known.get("approximation_mode") == "tanh" else "gelu"),
    "HSigmoid": lambda known: expression_of("hard_sigmoid", 1 / 6, 0.5),
    "Round": lambda known: expression_of("round") if known["mode"] == "half_to_even" else None,
    "SoftSign": lambda known: _chain(
        1, Instruction("abs", (0,)), Instruction("add_number", (1,), (1.0,)), Instruction("divide", (0, 2))
    ),
    "SquaredDifference": lambda known: _chain(2, Instruction("subtract", (0, 1)), Instruction("square", (2,))),
}
"""The expression of an operation with these attributes; None if there is none."""

ROUNDINGS = ("Ceiling", "Floor", "Round")
"""Operations that round to whole numbers."""

PARAMETRIC: Mapping[str, Callable[..., Expression]] = {
    "HardSigmoid": lambda alpha, beta: expression_of("hard_sigmoid", alpha, beta),
    "Selu": lambda alpha, factor: _chain(
        1, Instruction("elu", (0,), (alpha,)), Instruction("multiply_number", (1,), (factor,))
    ),
    "Swish": lambda slope=1.0: expression_of("swish", *(() if slope == 1 else (slope,))),
}
"""The expression of an operation whose inputs after the first are these numbers."""


def _chain(operands: int, *instructions: Instruction) -> Expression:
    return Expression(operands, instructions)


def elementwise(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower an operation of EXPRESSIONS. Rounding is the identity of integers."""
    known = node.op.attributes
    if node.type in ROUNDINGS and inputs[0].dtype.kind in "iu":
        return ReshapeStep(inputs, outputs)
    if not all_f32([*inputs, *outputs]) or known.get("auto_broadcast") == "pdpd":
        return None
    expression = EXPRESSIONS[node.type](known)
    return None if expression is None else ElementwiseStep(inputs, outputs, expression=expression)


def parametric(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower an operation of PARAMETRIC with constant parameters."""
    numbers = [scalar(value) for value in inputs[1:]]
    if None in numbers or not all_f32([*inputs, *outputs]):
        return None
    return ElementwiseStep(inputs[:1], outputs, expression=PARAMETRIC[node.type](*numbers))


def power(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a power; square and sqrt have dedicated instructions."""
    base, exponent = inputs
    if not all_f32([*inputs, *outputs]) or node.op.attributes["auto_broadcast"] == "pdpd":
        return None
    number = scalar(exponent)
    if number is None or base.shape != outputs[0].shape:
        return ElementwiseStep(inputs, outputs, expression=expression_of("power"))
    special = {2.0: "square", 0.5: "sqrt"}.get(number)
    expression = expression_of(special) if special else expression_of("power_number", number)
    return ElementwiseStep([base], outputs, expression=expression)


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
    return ElementwiseStep(inputs[:1], outputs, expression=expression_of(f"round_{target}"))


def leaky_relu(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower PReLU with constant finite slopes: x if x > 0, else slope · x; as max(x, slope · x) if that is equal."""
    x, slope = inputs
    array = slope.constant
    if array is None or not all_f32([*inputs, *outputs]) or not np.isfinite(array).all():
        return None
    if array.ndim == 1 and len(x.shape) > 1 and x.shape[1] == array.size:
        array = array.reshape(array.shape + (1,) * (len(x.shape) - 2))
    array = array.reshape(array.shape[max(array.ndim - len(x.shape), 0) :])
    if np.all((array > 0) & (array <= 1)):
        expression = _chain(2, Instruction("multiply", (0, 1)), Instruction("maximum", (0, 2)))
    else:
        expression = _chain(
            2,
            Instruction("relu", (0,)),
            Instruction("minimum_number", (0,), (0.0,)),
            Instruction("multiply", (3, 1)),
            Instruction("add", (2, 4)),
        )
    return ElementwiseStep([x, Value.of(array, slope.name)], outputs, expression=expression)

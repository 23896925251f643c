"""Lowerings to elementwise steps and sums: ReduceL1 and ReduceL2, NormalizeL2, LRN, LogSoftmax, OneHot."""

from __future__ import annotations

import numpy as np

from irload.core.element import element_of_dtype, i32, i64
from irload.core.size import is_size
from irload.graph import Node
from irload.ops.comparison.compare import Equal
from irload.ops.condition.select import Select
from irload.plan.ir.expression import Expression, Instruction, expression_of
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ComputeStep, ElementwiseStep, ReduceStep, ReshapeStep
from irload.plan.lowering.padding import padded
from irload.plan.lowering.values import all_f32, applied, known_axes, progression, reduced, rounded, sliced

FARTHEST = 4
"""Maximum distance of elements that LRN adds: with more, the expressions are too long."""


def norm(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower ReduceL1 and ReduceL2 over known axes."""
    x, (out,) = inputs[0], outputs
    axes = known_axes(inputs[1], len(x.shape))
    if not axes or not all_f32([x, out]):
        return None
    if node.type == "ReduceL1":
        sizes = applied("abs", x)
        return [sizes, ReduceStep([sizes.output], outputs, kind="sum", axes=axes)]
    squares = applied("square", x)
    total = out.like()
    return [
        squares,
        ReduceStep([squares.output], [total], kind="sum", axes=axes),
        ElementwiseStep([total], outputs, expression=expression_of("sqrt")),
    ]


def normalize(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower NormalizeL2 over known axes."""
    x, attributes = inputs[0], node.op.attributes
    axes = known_axes(inputs[1], len(x.shape))
    if not axes or not all_f32([x, *outputs]):
        return None
    squares = applied("square", x)
    total = reduced(squares.output, "sum", axes)
    bounded = "add_number" if attributes["eps_mode"] == "add" else "maximum_number"
    divided = (
        Instruction(bounded, (1,), (rounded(attributes["eps"]),)),
        Instruction("sqrt", (2,)),
        Instruction("divide", (0, 3)),
    )
    return [squares, total, ElementwiseStep([x, total.output], outputs, expression=Expression(2, divided))]


def local_response_normalize(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower LRN over known axes. The squares around each element are slices of the padded squares."""
    x, attributes = inputs[0], node.op.attributes
    axes, size = known_axes(inputs[1], len(x.shape)), attributes["size"]
    reach = max(size - 1, 0) // 2
    if not axes or reach > FARTHEST or any(is_size(x.shape[k]) for k in axes) or not all_f32([x, *outputs]):
        return None
    steps: list[Step] = [applied("square", x)]
    total = steps[0].output
    for axis in axes:
        wide = padded(axis, reach, reach, total, np.zeros((), np.float32), steps)
        parts = [sliced(wide, axis, slice(first, first + x.shape[axis])) for first in range(2 * reach + 1)]
        count = len(parts)
        adds = [Instruction("add", (k + count - 2 if k > 1 else 0, k)) for k in range(1, count)]
        total = x.like()
        added = ElementwiseStep([p.output for p in parts], [total], expression=Expression(count, tuple(adds)))
        steps += [*parts, added]
    scale = rounded(rounded(attributes["alpha"]) / size ** len(axes))
    divided = (
        Instruction("multiply_number", (1,), (scale,)),
        Instruction("add_number", (2,), (rounded(attributes["bias"]),)),
        Instruction("power_number", (3,), (rounded(attributes["beta"]),)),
        Instruction("divide", (0, 4)),
    )
    return [*steps, ElementwiseStep([x, total], outputs, expression=Expression(2, divided))]


def log_softmax(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower LogSoftmax: x − max(x) − log(sum(exp(x − max(x))))."""
    x = inputs[0]
    if not x.shape or not all_f32([x, *outputs]):
        return None
    axes = (int(node.op.attributes["axis"]) % len(x.shape),)
    largest = reduced(x, "max", axes)
    difference = applied("subtract", x, largest.output)
    powers = applied("exp", difference.output)
    total = reduced(powers.output, "sum", axes)
    left = Expression(2, (Instruction("log", (1,)), Instruction("subtract", (0, 2))))
    last = ElementwiseStep([difference.output, total.output], outputs, expression=left)
    return [largest, difference, powers, total, last]


def one_hot(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower OneHot: Select(indices = positions on the new axis, on_value, off_value)."""
    (indices, _, *values), (out,), attributes = inputs, outputs, node.op.attributes
    element = element_of_dtype(indices.dtype)
    if element not in (i32, i64) or out.dtype.name not in ("bool", "float32", "int32", "int64"):
        return None
    if attributes.get("negative_indices_mode") == "normalize":
        return None
    axis, steps = attributes["axis"] % len(out.shape), list[Step]()
    positions = progression(0, 1, (*out.shape[axis : axis + 1], *(1,) * (len(out.shape) - 1 - axis)), element, steps)
    column = Value((*indices.shape[:axis], 1, *indices.shape[axis:]), indices.dtype, name=out.name)
    mask = Value(out.shape, np.dtype(bool), name=out.name)
    return [
        *steps,
        ReshapeStep([indices], [column]),
        ComputeStep.of(Equal(), [column, positions], mask),
        ComputeStep.of(Select(), [mask, *values], out),
    ]

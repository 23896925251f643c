"""Lowering of Einsum: a Transpose for one operand, a MatMul between Transposes for two operands."""

from __future__ import annotations

from math import prod

from irload.graph import Node
from irload.ops.matrix.einsum import Equation
from irload.plan.ir.program import Step, Value
from irload.plan.ir.reshaping import reshaped, transposed
from irload.plan.ir.steps import MatMulStep, ReshapeStep, TransposeStep
from irload.plan.lowering.values import all_f32


def einsum(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower an Einsum in which every letter has one size and occurs at most once per operand."""
    equation = Equation.parse(node.op.attributes["equation"]).spelled([len(v.shape) for v in inputs])
    if any(len(set(labels)) < len(labels) for labels in equation.inputs):
        return None
    if len(inputs) == 1 and len(equation.output) == len(equation.inputs[0]):
        order = tuple(equation.inputs[0].index(label) for label in equation.output)
        return [TransposeStep(inputs, outputs, order=order)]
    return _product(node, equation, inputs, outputs) if len(inputs) == 2 and all_f32([*inputs, *outputs]) else None


def _product(node: Node, equation: Equation, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    if inputs[0].is_constant and not inputs[1].is_constant:  # weights are the second operand of a matmul
        inputs, equation = inputs[::-1], Equation(equation.inputs[::-1], equation.output)
    (left, right), out = equation.inputs, equation.output
    sizes: dict[str, int] = {}
    for labels, value in zip(equation.inputs, inputs, strict=True):
        if any(sizes.setdefault(label, n) != n for label, n in zip(labels, value.shape, strict=True)):
            return None
    both = [label for label in left if label in right]
    batch, summed = [label for label in out if label in both], [label for label in both if label not in out]
    rows, columns = [label for label in out if label not in right], [label for label in out if label not in left]
    if not set(left) | set(right) <= {*out, *summed}:
        return None  # a sum over an axis that only one operand has
    if not summed and not (rows and columns):
        return None  # an elementwise product

    steps: list[Step] = []
    across = right == (*batch, *columns, *summed)
    a = _matrices(inputs[0], left, [batch, rows, summed], sizes, steps)
    b = _matrices(inputs[1], right, [batch, columns, summed] if across else [batch, summed, columns], sizes, steps)
    axes = (*batch, *rows, *columns)
    product = outputs[0].like((*a.shape[:-1], prod(sizes[label] for label in columns)))
    steps.append(MatMulStep([a, b], [product], transpose_b=across))
    parts = reshaped(product, tuple(sizes[label] for label in axes), steps)
    steps.append(TransposeStep([parts], outputs, order=tuple(axes.index(label) for label in out)))
    return steps


def _matrices(
    value: Value, labels: tuple[str, ...], groups: list[list[str]], sizes: dict[str, int], steps: list[Step]
) -> Value:
    """Return an operand as [batch…, M, K], where M and K are the products of the last two groups of axes."""
    batch, *others = groups
    order = tuple(labels.index(label) for group in groups for label in group)
    if order != tuple(range(len(order))):
        value = transposed(value, order, steps)
    shape = (*(sizes[label] for label in batch), *(prod(sizes[label] for label in group) for group in others))
    if shape != value.shape:
        steps.append(ReshapeStep([value], [value.like(shape)]))
        value = steps[-1].output
    return value

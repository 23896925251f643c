"""Lowerings of Softmax, normalizations and reductions."""

from __future__ import annotations

from typing import cast

import numpy as np

from irload.graph import Node
from irload.ops.normalization.moments import BatchNormInference, BatchNormInference5
from irload.plan.ir import steps as ir
from irload.plan.ir.expression import ADD, SUBTRACT
from irload.plan.ir.program import Step, Value
from irload.plan.ir.reshaping import transposed
from irload.plan.lowering.values import all_f32, applied, known_axes, reduced, rounded

_REDUCTIONS = {"ReduceMean": "mean", "ReduceSum": "sum", "ReduceMax": "max", "ReduceMin": "min"}


def softmax(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower SoftMax."""
    rank = len(outputs[0].shape)
    if not all_f32([*inputs, *outputs]) or not rank:
        return None
    return ir.SoftmaxStep(inputs, outputs, axis=int(node.op.attributes["axis"]) % rank)


def mean_variance(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower MVN: with variance normalization between transposes, if the axes are not the last ones."""
    x, attributes = inputs[0], node.op.attributes
    axes = _axes_of_mvn(node, inputs)
    if not axes or not all_f32([x, *outputs]):
        return None
    if not attributes["normalize_variance"]:
        mean = reduced(x, "mean", axes)
        return [mean, ir.ElementwiseStep([x, mean.output], outputs, expression=SUBTRACT)]
    outside, eps = attributes.get("eps_mode") == "outside_sqrt", rounded(attributes["eps"])
    order = (*(k for k in range(len(x.shape)) if k not in axes), *axes)
    if order == tuple(range(len(order))):
        return [ir.NormalizeStep([x], outputs, axes=axes, eps=eps, outside=outside)]
    last = tuple(range(len(order) - len(axes), len(order)))
    steps: list[Step] = []
    turned = transposed(x, order, steps)
    normalized = turned.like()
    steps.append(ir.NormalizeStep([turned], [normalized], axes=last, eps=eps, outside=outside))
    inverse = tuple(order.index(k) for k in range(len(order)))
    return [*steps, ir.TransposeStep([normalized], outputs, order=inverse)]


def _axes_of_mvn(node: Node, inputs: list[Value]) -> tuple[int, ...]:
    """Return the sorted axes that an MVN of any opset reduces, empty if they are unknown."""
    rank, attributes = len(inputs[0].shape), node.op.attributes
    if len(inputs) == 2:
        return known_axes(inputs[1], rank)
    axes = attributes["reduction_axes"] or range(1 if attributes["across_channels"] else 2, rank)
    return tuple(sorted({int(a) % rank for a in axes}))


def cumulative_sum(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower CumSum along a known axis."""
    x, axis = inputs[0], inputs[1].constant if len(inputs) > 1 else np.zeros((), np.int64)
    if axis is None or not x.shape or x.dtype.name not in ("float32", "int32", "int64"):
        return None
    along, known = int(axis.reshape(())), node.op.attributes
    if not -len(x.shape) <= along < len(x.shape):
        return None
    return ir.CumulativeSumStep(
        [x], outputs, axis=along % len(x.shape), exclusive=known["exclusive"], reverse=known["reverse"]
    )


def reduction(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a sum, mean, maximum or minimum over constant axes."""
    axes = known_axes(inputs[1], len(inputs[0].shape))
    if not axes or not all_f32([inputs[0], *outputs]):
        return None
    return ir.ReduceStep(inputs[:1], outputs, kind=_REDUCTIONS[node.type], axes=axes)


def group_normalization(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower GroupNormalization."""
    if not all_f32([*inputs, *outputs]):
        return None
    attributes = node.op.attributes
    return ir.GroupNormalizeStep(inputs, outputs, groups=attributes["num_groups"], eps=rounded(attributes["epsilon"]))


def batch_normalization(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower BatchNorm to a product and a sum with constants per channel, which passes fold into convolutions."""
    op = cast(BatchNormInference5, node.op)
    data, gamma, beta, mean, variance = inputs
    if isinstance(op, BatchNormInference):
        gamma, beta, data = inputs[:3]
    g, b, m, v = (value.constant for value in (gamma, beta, mean, variance))
    if g is None or b is None or m is None or v is None or not all_f32([*inputs, *outputs]):
        return None
    with np.errstate(all="ignore"):
        factor = g.astype(np.float64) / np.sqrt(v.astype(np.float64) + op.epsilon)
        term = b - m * factor
    if not (np.isfinite(factor).all() and np.isfinite(term).all()):
        return None
    column = (-1, *(1,) * (len(data.shape) - 2))
    numbers = [Value.of(np.asarray(a, np.float32).reshape(column)) for a in (factor, term)]
    product = applied("multiply", data, numbers[0])
    return [product, ir.ElementwiseStep([product.output, numbers[1]], outputs, expression=ADD)]

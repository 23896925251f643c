"""Softmax, normalisations and reductions."""

from __future__ import annotations

from irload.graph import Node
from irload.plan.lowering import all_f32, lowers
from irload.plan.program import Step, Value
from irload.plan.steps import Normalize, Reduce, Softmax

_REDUCTIONS = {"ReduceMean": "mean", "ReduceSum": "sum", "ReduceMax": "max", "ReduceMin": "min"}


@lowers("SoftMax")
def softmax(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """SoftMax."""
    rank = len(outputs[0].shape)
    if not all_f32([*inputs, *outputs]) or not outputs[0].size:
        return None
    return Softmax(inputs, outputs, axis=int(node.op.attributes["axis"]) % rank)


@lowers("MVN")
def mean_variance(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """MVN of opset6 over trailing axes."""
    attributes = node.op.attributes
    if len(inputs) != 2 or inputs[1].constant is None or not all_f32([inputs[0], *outputs]) or not outputs[0].size:
        return None
    rank = len(inputs[0].shape)
    axes = tuple(sorted({int(a) % rank for a in inputs[1].constant.reshape(-1).tolist()}))
    if axes != tuple(range(rank - len(axes), rank)) or not axes or not attributes["normalize_variance"]:
        return None
    if attributes["eps_mode"] != "inside_sqrt":
        return None
    return Normalize(inputs[:1], outputs, axes=axes, eps=attributes["eps"])


@lowers(*_REDUCTIONS)
def reduction(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Over neighbouring axes only: others would have to be moved first."""
    axes_value = inputs[1].constant
    if axes_value is None or not all_f32([inputs[0], *outputs]) or not inputs[0].size:
        return None
    rank = len(inputs[0].shape)
    axes = tuple(sorted({int(a) % rank for a in axes_value.reshape(-1).tolist()})) if rank else ()
    if not axes or axes != tuple(range(axes[0], axes[-1] + 1)):
        return None
    return Reduce(inputs[:1], outputs, kind=_REDUCTIONS[node.type], axes=axes)

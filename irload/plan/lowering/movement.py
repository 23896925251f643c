"""Lowerings of data movement: views, permutations, concatenation."""

from __future__ import annotations

from typing import cast

from irload.core.shape import normalize_axes, normalize_axis
from irload.core.size import number
from irload.graph import Node
from irload.ops.movement.broadcast import Broadcast
from irload.ops.movement.slicing import python_slice
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import BroadcastStep, ConcatStep, ReshapeStep, SliceStep, TransposeStep


def reshape(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower operations that only change the shape."""
    return ReshapeStep(inputs[:1], outputs)


def transpose(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a Transpose with a constant order."""
    order = inputs[1].constant
    if order is None:
        return None
    rank = len(inputs[0].shape)
    axes = tuple(int(k) % rank for k in order.tolist()) if order.size else tuple(reversed(range(rank)))
    return TransposeStep(inputs[:1], outputs, order=axes)


def concat(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a Concat. Empty inputs are dropped, such as the KV cache of a decoder before the first token."""
    parts = [v for v in inputs if v.size]
    if len(parts) == 1:
        return ReshapeStep(parts, outputs)
    return ConcatStep(parts, outputs, axis=int(node.op.attributes["axis"]) % len(outputs[0].shape))


def split(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower Split and VariadicSplit to one slice per output."""
    axis_value = inputs[1].constant
    if axis_value is None:
        return None
    axis = normalize_axis(int(axis_value.reshape(-1)[0]), len(inputs[0].shape))
    start, slices = 0, list[Step]()
    for output in outputs:
        stop = start + output.shape[axis]
        slices.append(SliceStep(inputs[:1], [output], index=(*(slice(None),) * axis, slice(start, stop))))
        start = stop
    return slices


def slice_by_constants(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a Slice with known bounds."""
    known = [v.constant for v in inputs[1:]]
    if any(k is None for k in known) or not outputs[0].size:
        return None
    starts, stops, steps, *rest = ([number(n) for n in t.reshape(-1).tolist()] for t in known if t is not None)
    shape = inputs[0].shape
    index = [slice(None)] * len(shape)
    along = normalize_axes(rest[0], len(shape)) if rest else range(len(starts))
    for axis, start, stop, step in zip(along, starts, stops, steps, strict=True):
        index[axis] = python_slice(shape[axis], start, stop, step)
    return SliceStep(inputs[:1], outputs, index=tuple(index))


def broadcast(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a Broadcast with NumPy's rules."""
    operation = cast(Broadcast, node.op)
    if operation.is_explicit(inputs[2] if len(inputs) > 2 else None):
        return None
    if inputs[0].is_constant and inputs[0].size == 1:
        outputs[0].repeated = inputs[0].constant
    return BroadcastStep(inputs[:1], outputs)

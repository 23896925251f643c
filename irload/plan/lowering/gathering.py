"""Lowerings of Gather and GatherElements: a view if the indices are known and equidistant, otherwise a Gather step.

The step can read f16 data that the graph converts to f32, so that only the selected elements are converted.
"""

from __future__ import annotations

import math

import numpy as np

from irload.core import element as et
from irload.core.size import number
from irload.core.tensor import Array
from irload.graph import Node, Output
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import INDICES, GatherStep, ReshapeStep, TransposeStep
from irload.plan.lowering.values import ending, from_start, sliced


def gather(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower a Gather along a known axis."""
    data, indices, axis_value = inputs
    axis = axis_value.constant
    if axis is None or not data.size:
        return None
    along = int(axis.reshape(())) % len(data.shape)
    shared = node.op.attributes.get("batch_dims", 0)
    shared += len(indices.shape) if shared < 0 else 0
    if indices.constant is not None and not shared:
        selection = _regular(indices.constant, data.shape[along])
        if selection is not None:
            part = sliced(data, along, selection)
            return ending(
                data, [part, *([] if len(indices.shape) == 1 else [ReshapeStep([part.output], outputs)])], outputs
            )
    if indices.dtype.name not in INDICES or not indices.size:
        return None
    table = data if shared else _table(data, outputs[0])
    return [GatherStep([table, indices], outputs, axis=along, shared=shared)]


def gather_elements(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower a GatherElements whose indices are in range: a Gather along the last axis that shares all other axes.

    Any other GatherElements is computed by its operation, which reports indices out of range.
    """
    data, indices = inputs
    rank = len(data.shape)
    axis = node.op.attributes["axis"] % rank
    if indices.dtype.name not in INDICES or data.dtype.hasobject or not data.size or not indices.size:
        return None
    bounds = _bounds(node.inputs[1], indices)
    if bounds is None or bounds[0] < -data.shape[axis] or bounds[1] >= data.shape[axis]:
        return None
    order = (*(k for k in range(rank) if k != axis), axis)
    back = tuple(order.index(k) for k in range(rank))
    steps = [_transposed(value, order) for value in inputs]
    selected = Value(steps[1].output.shape, data.dtype, name=data.name)
    gathered = GatherStep([step.output for step in steps], [selected], axis=rank - 1, shared=rank - 1)
    return [*steps, gathered, TransposeStep([selected], outputs, order=back)]


def _transposed(value: Value, order: tuple[int, ...]) -> TransposeStep:
    return TransposeStep(
        [value], [Value(tuple(value.shape[k] for k in order), value.dtype, name=value.name)], order=order
    )


MOVES = frozenset(("Broadcast", "Convert", "Reshape", "Slice", "Squeeze", "StridedSlice", "Transpose", "Unsqueeze"))
"""Operations whose results consist of elements of their first input, possibly converted to integers."""


def _bounds(source: Output, value: Value) -> tuple[int, int] | None:
    """Return the least and greatest value that integers can have for any input of the model, or None if unknown."""
    if value.constant is not None and value.constant.dtype != object:
        return int(value.constant.min()), int(value.constant.max())
    node = source.node
    while node.type in MOVES and source.type.element.is_integer:
        source = node.inputs[0]
        node = source.node
    if node.type == "Clamp" and source.type.element.is_integer:
        low, high = node.op.attributes["min"], node.op.attributes["max"]
        return (math.ceil(low), math.floor(high)) if math.isfinite(low) and math.isfinite(high) else None
    if node.type == "TopK" and source.index == 1:
        data = node.inputs[0].type
        count = None if data.rank is None else data.shape.dims[node.op.attributes["axis"]].hi
        return None if count is None else (0, count - 1)
    return None


def _regular(indices: Array, size: int) -> slice | None:
    """Return the slice that selects the same elements as the indices, or None if there is no equivalent slice."""
    at = from_start(indices.reshape(-1), size)
    if at is None or not at.size:
        return None
    first, step = number(at[0]), number(at[1] - at[0]) if at.size > 1 else 1
    if not step or (np.diff(at) != step).any():
        return None
    stop = first + step * at.size
    return slice(first, stop if stop >= 0 else None, step)


def _table(data: Value, out: Value) -> Value:
    """Return the data to gather from: the stored f16 if the data is widened f16 and only a part of it is selected."""
    if data.source is None or data.source.recipe is None or not data.source.recipe.widens or out.size >= data.size:
        return data
    return Value(data.shape, et.f16.dtype, data.source.recipe.inputs[0], name=data.name)

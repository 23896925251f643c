"""The lowering of Gather: a view if the indices are known and equidistant, otherwise a Gather step.

The step can read f16 data that the graph converts to f32, so that only the selected elements are converted.
"""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from irload.core.shape import normalize_axis
from irload.core.size import number
from irload.core.tensor import Array
from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import INDICES, GatherStep, ReshapeStep
from irload.plan.lowering.values import ending, from_start, sliced


def gather(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower a Gather along a known axis."""
    data, indices, axis_value = inputs
    axis = axis_value.constant
    if axis is None or not data.size:
        return None
    along = normalize_axis(int(axis.reshape(())), len(data.shape))
    shared = node.op.attributes.get("batch_dims", 0)
    shared += len(indices.shape) if shared < 0 else 0
    if indices.constant is not None and not shared:
        selection = _regular(indices.constant, data.shape[along])
        if selection is not None:
            part = sliced(data, along, selection)
            if len(indices.shape) == 1:
                return ending(data, [part], outputs)
            return [part, ReshapeStep([part.output], outputs)]
    if indices.dtype.name not in INDICES or not indices.size:
        return None
    table = data if shared else _table(data, outputs[0])
    return [GatherStep([table, indices], outputs, axis=along, shared=shared)]


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

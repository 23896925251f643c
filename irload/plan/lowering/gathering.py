"""Gather: views where indices are known and regular, rows of a table that stays f16, a step of its own."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import INDICES, Compute, Gather, Reshape
from irload.plan.lowering.values import ending, sliced


def gather(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Gather along a known axis."""
    data, indices, axis_value = inputs
    axis = axis_value.constant
    if axis is None or node.op.attributes.get("batch_dims", 0) or not data.size:
        return None
    along = int(axis.reshape(())) % len(data.shape)
    if indices.constant is not None:
        taken = _regular(indices.constant, data.shape[along])
        if taken is not None:
            part = sliced(data, along, taken)
            return ending(
                data, [part, *([] if len(indices.shape) == 1 else [Reshape([part.output], outputs)])], outputs
            )
    widened_after = _widened_after(node, inputs, outputs)
    if widened_after is not None or indices.dtype.name not in INDICES or not indices.size:
        return widened_after
    return [Gather([data, indices], outputs, axis=along)]


def _regular(indices: Array, size: int) -> slice | None:
    """The slice that takes the same elements, None where there is none."""
    at = indices.reshape(-1).astype(np.int64)
    at = np.where(at < 0, at + size, at)
    if not at.size or at.min() < 0 or at.max() >= size:
        return None
    first, step = int(at[0]), int(at[1] - at[0]) if at.size > 1 else 1
    if not step or (np.diff(at) != step).any():
        return None
    stop = first + step * at.size
    return slice(first, stop if stop >= 0 else None, step)


def _widened_after(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """From a table that is f16 in the file and widened: what is taken of it is widened instead."""
    table, out = inputs[0].source, outputs[0]
    if table is None or table.recipe is None or not table.recipe.widens or out.size >= inputs[0].size:
        return None
    stored = Value(inputs[0].shape, et.f16.dtype, table.recipe.inputs[0], name=inputs[0].name)
    taken = Value(out.shape, et.f16.dtype, name=out.name)
    types = [TensorType(element, Shape(*out.shape)) for element in (et.f16, et.f32)]
    return [
        Compute([stored, *inputs[1:]], [taken], op=node.op, types=(types[0],)),
        Compute([taken], [out], op=table.recipe.op, types=(types[1],)),
    ]

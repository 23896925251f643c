"""Pad: along each axis a concatenation of what stands before the data, the data, and what stands behind."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import Broadcast, Concat, Reshape, Slice


def pad(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Pad by known counts, negative ones too, with a known number where one is put around the data."""
    data, begin, end, *rest = inputs
    fill = node.op.attributes["pad_mode"]
    if fill == "constant":
        fill = rest[0].constant if rest else np.zeros((), data.dtype)
    if fill is None or begin.constant is None or end.constant is None or not data.size:
        return None
    counts = list(zip(begin.constant.tolist(), end.constant.tolist(), strict=True))
    if any(-b >= n or -e >= n or -b - e >= n for n, (b, e) in zip(data.shape, counts, strict=True)):
        return None
    steps: list[Step] = []
    for axis, (before, behind) in enumerate(counts):  # those of a map last, where a convolution finds them
        if before or behind:
            data = _along(axis, before, behind, data, fill, steps)
    if not steps:
        return [Reshape([data], outputs)]
    steps[-1].outputs = outputs
    return steps


def _along(axis: int, begin: int, end: int, data: Value, fill: Array | str, steps: list[Step]) -> Value:
    """The data padded along one axis: by a number, or by elements of their own as the mode says."""
    n = data.shape[axis]
    pieces = [data]
    if min(begin, end) < 0:
        pieces = [_slice(data, axis, slice(max(0, -begin), n - max(0, -end)), steps)]
    if begin > 0:
        pieces.insert(0, _piece(axis, begin, False, data, fill, steps))
    if end > 0:
        pieces.append(_piece(axis, end, True, data, fill, steps))
    if len(pieces) == 1:
        return pieces[0]
    steps.append(Concat(pieces, [_like(data, axis, n + begin + end)], axis=axis))
    return steps[-1].output


def _piece(axis: int, count: int, behind: bool, data: Value, fill: Array | str, steps: list[Step]) -> Value:
    """The `count` elements that stand before the data, or behind it."""
    n = data.shape[axis]
    if not isinstance(fill, str):
        return Value.of(np.broadcast_to(fill.reshape(()), _like(data, axis, count).shape))
    if fill == "edge":
        edge = _slice(data, axis, slice(n - 1, n) if behind else slice(0, 1), steps)
        steps.append(Broadcast([edge], [_like(data, axis, count)]))
        return steps[-1].output
    skipped = 1 if fill == "reflect" else 0  # the edge itself, which symmetric repeats
    first = n - 1 - skipped if behind else skipped + count - 1
    last = first - count
    return _slice(data, axis, slice(first, last if last >= 0 else None, -1), steps)


def _slice(data: Value, axis: int, index: slice, steps: list[Step]) -> Value:
    size = len(range(*index.indices(data.shape[axis])))
    steps.append(Slice([data], [_like(data, axis, size)], index=(*(slice(None),) * axis, index)))
    return steps[-1].output


def _like(data: Value, axis: int, size: int) -> Value:
    return Value((*data.shape[:axis], size, *data.shape[axis + 1 :]), data.dtype, name=data.name)

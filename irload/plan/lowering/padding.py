"""Lowering of Pad: for each axis, a Concat of the padding before the data, the data, and the padding after the data."""

from __future__ import annotations

import numpy as np

from irload.core.size import is_size
from irload.core.tensor import Array
from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import BroadcastStep, ConcatStep
from irload.plan.lowering.values import ending, resized, sliced


def pad(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower a Pad with known counts, including negative ones, and a known value in constant mode."""
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
    for axis, (before, behind) in enumerate(counts):
        if before or behind:
            data = padded(axis, before, behind, data, fill, steps)
    return ending(data, steps, outputs)


def padded(axis: int, begin: int, end: int, data: Value, fill: Array | str, steps: list[Step]) -> Value:
    """Return the data padded along one axis, by a constant or by its elements according to the mode."""
    n = data.shape[axis]
    pieces = [data]
    if min(begin, end) < 0:
        steps.append(sliced(data, axis, slice(max(0, -begin), n - max(0, -end))))
        pieces = [steps[-1].output]
    if begin > 0:
        pieces.insert(0, _piece(axis, begin, False, data, fill, steps))
    if end > 0:
        pieces.append(_piece(axis, end, True, data, fill, steps))
    if len(pieces) == 1:
        return pieces[0]
    steps.append(ConcatStep(pieces, [resized(data, axis, n + begin + end)], axis=axis))
    return steps[-1].output


def _piece(axis: int, count: int, behind: bool, data: Value, fill: Array | str, steps: list[Step]) -> Value:
    """Return the `count` elements of padding before or after the data."""
    n = data.shape[axis]
    if not isinstance(fill, str):
        padding = resized(data, axis, count)
        if not any(map(is_size, padding.shape)):
            return Value.of(np.broadcast_to(fill.reshape(()), padding.shape))
        steps.append(BroadcastStep([Value.of(fill.reshape((1,) * len(padding.shape)))], [padding]))
        return padding
    if fill == "edge":
        edge = sliced(data, axis, slice(n - 1, n) if behind else slice(0, 1))
        steps += [edge, BroadcastStep([edge.output], [resized(data, axis, count)])]
        return steps[-1].output
    skipped = 1 if fill == "reflect" else 0  # reflect skips the edge element, symmetric repeats it
    first = n - 1 - skipped if behind else skipped + count - 1
    last = first - count
    steps.append(sliced(data, axis, slice(first, last if last >= 0 else None, -1)))
    return steps[-1].output

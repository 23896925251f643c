"""Pad: along each axis a concatenation of what stands before the data, the data, and what stands behind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irload.core.tensor import Array
from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import Broadcast, Concat, Reshape, Slice


def pad(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Pad by known counts, negative ones too, with a known number where one is put around the data."""
    data, begin, end, *rest = inputs
    value = rest[0].constant if rest else np.zeros((), data.dtype)
    mode = node.op.attributes["pad_mode"]
    if begin.constant is None or end.constant is None or not data.size or (mode == "constant" and value is None):
        return None
    counts = list(zip(begin.constant.tolist(), end.constant.tolist(), strict=True))
    if any(-b >= n or -e >= n or -b - e >= n for n, (b, e) in zip(data.shape, counts, strict=True)):
        return None
    steps: list[Step] = []
    for axis, (before, behind) in enumerate(counts):  # those of a map last, where a convolution finds them
        if before or behind:
            data = _along(axis, before, behind, data, value if mode == "constant" else mode, steps)
    if not steps:
        return [Reshape([data], outputs)]
    steps[-1].outputs = outputs
    return steps


def _along(axis: int, begin: int, end: int, data: Value, fill: Array | str, steps: list[Step]) -> Value:
    """The data padded along one axis: by a number, or by elements of their own as the mode says."""
    n = data.shape[axis]
    pieces = [
        *_piece(axis, begin, _before(begin, fill), data, fill, steps),
        _slice(data, axis, slice(max(0, -begin), n - max(0, -end)), steps) if min(begin, end) < 0 else data,
        *_piece(axis, end, _behind(n, end, fill), data, fill, steps),
    ]
    if len(pieces) == 1:
        return pieces[0]
    steps.append(Concat(pieces, [_like(data, axis, n + begin + end)], axis=axis))
    return steps[-1].output


def _before(count: int, mode: Array | str) -> slice:
    """The elements that stand before the first one."""
    match mode:
        case "reflect":
            return slice(count, 0, -1)
        case "symmetric":
            return slice(count - 1, None, -1)
        case _:
            return slice(0, 1)


def _behind(n: int, count: int, mode: Array | str) -> slice:
    """The elements that stand behind the last one of `n`."""
    last = n - 2 if mode == "reflect" else n - 1
    if mode in ("reflect", "symmetric"):
        return slice(last, last - count if last >= count else None, -1)
    return slice(n - 1, n)


def _piece(axis: int, count: int, index: slice, data: Value, fill: Array | str, steps: list[Step]) -> Iterator[Value]:
    """What `count` elements of padding are, nothing where there are none."""
    if count <= 0:
        return
    if not isinstance(fill, str):
        shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
        yield Value.of(np.broadcast_to(fill.reshape(()), shape))
        return
    piece = _slice(data, axis, index, steps)
    if fill == "edge" and count > 1:
        steps.append(Broadcast([piece], [_like(data, axis, count)]))
        piece = steps[-1].output
    yield piece


def _slice(data: Value, axis: int, index: slice, steps: list[Step]) -> Value:
    size = len(range(*index.indices(data.shape[axis])))
    steps.append(Slice([data], [_like(data, axis, size)], index=(*(slice(None),) * axis, index)))
    return steps[-1].output


def _like(data: Value, axis: int, size: int) -> Value:
    return Value((*data.shape[:axis], size, *data.shape[axis + 1 :]), data.dtype, name=data.name)

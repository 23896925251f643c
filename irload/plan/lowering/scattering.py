"""Lowerings of scatters whose known indices form a range along each axis, to Concats of data and updates.

PyTorch exports `x[:, 1:] = y` and `x[..., ::2] = y` as scatters with an index for every element.
"""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.shape import normalize_axis
from irload.core.tensor import Array
from irload.graph import Node
from irload.plan.ir.boxes import IndexBox, replaced
from irload.plan.ir.program import Step, Value
from irload.plan.lowering.values import from_start


def scatter_nd(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower ScatterNDUpdate with known indices, which replaces blocks selected by the leading axes."""
    data, indices = inputs[0], inputs[1].constant
    if indices is None or not indices.size or node.op.attributes.get("reduction", "none") != "none":
        return None
    lead = data.shape[: indices.shape[-1]]
    rows = from_start(indices.reshape(-1, len(lead)), lead)
    if rows is None:
        return None
    strides = [prod(lead[k + 1 :]) for k in range(len(lead))]
    box = box_of(rows @ np.array(strides, np.int64), prod(lead))
    return None if box is None else replaced(data, inputs[2], box, outputs)


def scatter(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower ScatterUpdate with known indices along a known axis, which replaces slices."""
    data, indices, axis = inputs[0], inputs[1].constant, inputs[3].constant
    if indices is None or axis is None or not data.size:
        return None
    along = normalize_axis(int(axis.reshape(())), len(data.shape))
    positions = from_start(indices.reshape(-1), data.shape[along])
    box = None if positions is None else box_of(positions, data.shape[along])
    if box is None:
        return None
    before = data.shape[:along]
    whole = IndexBox((*before, *box.sizes), (*(0,) * along, *box.first), (*before, *box.counts))
    return replaced(data, inputs[2], whole, outputs)


def box_of(positions: Array, total: int) -> IndexBox | None:
    """Return the box whose elements, in order, have these flat indices of `total` elements; None if there is no box."""
    levels: list[tuple[int, int]] = []  # number of positions and distance between them, innermost first
    rest = positions
    while rest.size > 1:
        steps = np.diff(rest)
        count = next(iter(np.flatnonzero(steps != steps[0]) + 1), rest.size)
        if steps[0] <= 0 or rest.size % count:
            return None
        levels.append((int(count), int(steps[0])))
        rest = rest[::count]
    if not positions.size or not np.array_equal(positions, _filled(int(positions[0]), levels)):
        return None
    if not levels or levels[0][1] > 1:
        levels.insert(0, (1, 1))
    axes: list[tuple[int, int, int]] = []
    for (count, step), above in zip(levels, [step for _, step in levels[1:]] + [total], strict=True):
        size, rest_of = divmod(above, step)
        first = int(positions[0]) // step % size if size else 0
        if rest_of or first + count > size:
            return None
        axes.insert(0, (size, first, count))
    sizes, firsts, counts = zip(*axes, strict=True)
    return IndexBox(sizes, firsts, counts)


def _filled(first: int, levels: list[tuple[int, int]]) -> Array:
    """Return the flat positions of (count, distance) levels, innermost first, beginning with `first`."""
    positions = np.array([first])
    for count, step in levels:
        positions = (np.arange(count)[:, None] * step + positions).reshape(-1)
    return positions

"""Lowerings of scatters whose known indices form a range along each axis, to Concats of data and updates.

PyTorch exports `x[:, 1:] = y` and `x[..., ::2] = y` as scatters with an index for every element.
"""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ConcatStep, ReshapeStep, SliceStep
from irload.plan.lowering.values import from_start
from irload.record import record


@record()
class IndexBox:
    """A box in an array of shape `sizes`: along axis k, the `counts[k]` elements that start at `first[k]`."""

    sizes: tuple[int, ...]
    first: tuple[int, ...]
    counts: tuple[int, ...]


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
    return None if box is None else _replaced(data, inputs[2], box, outputs)


def scatter(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower ScatterUpdate with known indices along a known axis, which replaces slices."""
    data, indices, axis = inputs[0], inputs[1].constant, inputs[3].constant
    if indices is None or axis is None or not data.size:
        return None
    along = int(axis.reshape(())) % len(data.shape)
    positions = from_start(indices.reshape(-1), data.shape[along])
    box = None if positions is None else box_of(positions, data.shape[along])
    if box is None:
        return None
    before = data.shape[:along]
    whole = IndexBox((*before, *box.sizes), (*(0,) * along, *box.first), (*before, *box.counts))
    return _replaced(data, inputs[2], whole, outputs)


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


def _replaced(data: Value, updates: Value, box: IndexBox, outputs: list[Value]) -> list[Step]:
    """Return the steps that replace a box of the data by updates. An element of the box is a block of the data."""
    block = data.size // prod(box.sizes)

    def shaped(value: Value, counts: tuple[int, ...]) -> ReshapeStep:
        return ReshapeStep([value], [Value((*counts, block), value.dtype, name=value.name)])

    steps: list[Step] = [shaped(data, box.sizes), shaped(updates, box.counts)]
    whole, joined = steps[0].output, steps[1].output
    ranges = [slice(f, f + c) for f, c in zip(box.first, box.counts, strict=True)]

    def outside(axis: int, start: int, stop: int) -> list[Step]:
        """Return the data before or after the box along an axis."""
        if start == stop:
            return []
        shape = (*box.counts[:axis], stop - start, *box.sizes[axis + 1 :], block)
        out = Value(shape, data.dtype, name=data.name)
        return [SliceStep([whole], [out], index=(*ranges[:axis], slice(start, stop)))]

    for axis in reversed(range(len(box.sizes))):
        before, after = outside(axis, 0, ranges[axis].start), outside(axis, ranges[axis].stop, box.sizes[axis])
        if before or after:
            parts = [*(s.output for s in before), joined, *(s.output for s in after)]
            joined = Value((*box.counts[:axis], *box.sizes[axis:], block), data.dtype, name=outputs[0].name)
            steps += [*before, *after, ConcatStep(parts, [joined], axis=axis)]
    return [*steps, ReshapeStep([joined], outputs)]

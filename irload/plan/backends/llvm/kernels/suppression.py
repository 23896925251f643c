"""Greedy non-maximum suppression: each box is compared with vectors of selected boxes until one of them overlaps it.

Selected boxes are stored by cell. Cells divide one axis into intervals as long as the longest box, so a box overlaps
only boxes of the same cell and of the two neighbours. Detectors that suppress all classes at once shift the boxes of
each class by an offset, which yields at least one cell per class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.ops.detection.boxes import IOU, Iou, Overlap, Suppress, suppress
from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.builder import Function, Vec
from irload.plan.backends.llvm.intrinsics import none_of
from irload.plan.backends.llvm.kernel import Standalone, address
from irload.plan.backends.llvm.kernels.loops import LocalIntegers
from irload.plan.backends.llvm.library import function
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tuning import FEW_CELLS, MANY_BOXES
from irload.plan.backends.llvm.vector_math import larger, smaller
from irload.record import record

_COLUMNS = 5
"""Columns of selected boxes: the lower corner, the upper corner, the area."""
MARGIN, SMALLEST = 2.0**-20, 1e-30
"""The relative margin of the bound of common areas, and an absolute one, for products that are subnormal."""
FARTHEST = 1e15
"""The maximum of coordinates for which boxes are divided into cells: areas of larger boxes may overflow."""
_SELECTED, _FLOATS, _HEAD = 88, 96, 120
"""Offsets in the memory of a call, after its arguments: the number of selected boxes, the f64, the columns."""


@record()
class BoxSuppression(Standalone):
    """Boxes [n, 4] in groups, best first → the indices of selected boxes, and their number.

    Arguments: the boxes; the indices; the columns, initially zeros; threshold, factor and offset as f64; the number of
    selected boxes; the cell of each box, from 1 on; for each cell, the range of its selected boxes in the columns, with
    an empty cell around the cells of each group; the end of each group; then the number of groups, the limit, and the
    bytes of a column. `bridge`: see `iou`. `shrinks`: while the threshold is above 0.5, each selected box multiplies it
    by the factor. `finite`: all coordinates are finite.
    """

    bridge: bool
    shrinks: bool
    finite: bool

    def write(self, f: Function) -> None:
        arguments = Arguments(f)
        boxes, indices, columns, floats, selected, cells, ranges, ends = arguments.pointers(8)
        groups, limit, nbytes = arguments.integers(3)
        v, overlap_limit = LocalIntegers(f, "next", "total", "count", "at", "apart"), f.local(8)
        v["next"] = 0
        v["total"] = 0
        offset = f.splat(f.load_scalar(floats, 16, "f64").cast("fptrunc", "f32"))

        for group in f.range(0, groups):
            last = f.load_int(ends, group * 8)
            v["count"] = 0
            f.store_scalar(f.load_scalar(floats, 0, "f64"), overlap_limit)
            for _ in f.until(lambda last=last: (v["next"] >= last) | (v["count"] >= limit)):
                index = v["next"]
                corners = [f.broadcast(boxes + index * 16, 4 * k) for k in range(4)]
                area = (corners[2] - corners[0] + offset) * (corners[3] - corners[1] + offset)
                threshold = f.load_scalar(overlap_limit, 0, "f64")
                factor = f.splat(threshold.cast("fptrunc", "f32"))
                cell = ranges + f.load_int(cells, index * 8) * 16
                v["apart"] = 1
                for at in f.range(-16, 32, 16):
                    v["at"] = f.load_int(cell, at)
                    end = f.load_int(cell, at + 8)
                    for _ in f.until(lambda end=end: (v["at"] >= end) | f.equal(v["apart"], 0)):
                        first = v["at"]
                        others = [f.load(columns + first * 4 + nbytes * k) for k in range(_COLUMNS)]
                        self._compare([*corners, area], others, offset, factor, v)
                        v["at"] = first + f.lanes
                with f.when(f.differ(v["apart"], 0)):
                    end, total = f.load_int(cell, 8), v["total"]
                    for k, value in enumerate([*corners, area]):
                        f.store_scalar(value.lane(0), columns + nbytes * k, end * 4)
                    f.store_scalar(end + 1, cell, 8)
                    f.store_scalar(index, indices, total * 8)
                    v["total"] = total + 1
                    v["count"] = v["count"] + 1
                    if self.shrinks:
                        smaller = threshold * f.load_scalar(floats, 8, "f64")
                        f.store_scalar(f.select(threshold.compare("ogt", 0.5), smaller, threshold), overlap_limit)
                v["next"] = index + 1
            v["next"] = last
        f.store_scalar(v["total"], selected)

    def _compare(self, box: list[Vec], others: list[Vec], offset: Vec, threshold: Vec, v: LocalIntegers) -> None:
        """Set `apart` to 0 if one of the others overlaps the box."""
        f = offset.function
        common = self._common(f, box, others, offset)
        a, b, zero = others[4], box[4], f.zero()
        union = a + b - common
        # A quotient above the threshold is above this bound, also after rounding. Few vectors need the division.
        bound = union.times_plus(threshold * (1 - MARGIN), -SMALLEST)
        with f.when(f.equal(none_of(f, common.compare("ugt", bound)).as_int(), 0)):
            overlap = (common / union).where(a.compare("ogt", zero) & b.compare("ogt", zero), zero)
            v["apart"] = none_of(f, overlap.compare("ugt", threshold)).as_int()  # NaN overlaps

    def _common(self, f: Function, box: list[Vec], others: list[Vec], offset: Vec) -> Vec:
        """The common area, by the operations of `iou` in the same order."""
        zero = f.zero()
        lengths: list[Vec] = []
        highest, lowest = (larger, smaller) if self.finite else (Vec.maximum, Vec.minimum)
        for k in (0, 1):
            low, high = highest(others[k], box[k]), lowest(others[k + 2], box[k + 2])
            length = highest(high - low + offset, zero)
            lengths.append(length if self.bridge else length.where(high.compare("oge", low), zero))
        return lengths[0] * lengths[1]


def suppressor(target: Target) -> Suppress:
    """A function that selects the same boxes as `suppress`, by compiled code for boxes of f32 compared by `iou`."""
    codes: dict[tuple[bool, ...], tuple[Callable[..., Any], Code]] = {}

    def compiled(
        boxes: Array,
        threshold: float,
        limit: int | None = None,
        *,
        counts: Array | None = None,
        eta: float = 1,
        overlap: Overlap = IOU,
    ) -> Array:
        if not isinstance(overlap, Iou) or boxes.dtype != np.float32:
            return suppress(boxes, threshold, limit, counts=counts, eta=eta, overlap=overlap)
        n = len(boxes)
        limit = n if limit is None else min(limit, n)
        if limit <= 0 or not np.float32(0) <= np.float32(threshold):
            return np.zeros(0, np.int64)
        boxes = np.ascontiguousarray(boxes)
        counts = np.array([n]) if counts is None else counts
        finite = bool(np.isfinite(boxes).all())
        ends, cells = np.cumsum(counts), group_cells(boxes, counts, overlap.offset, divided=finite)
        sizes = np.bincount(cells, minlength=int(cells.max()) + 2)  # cells without boxes separate the groups
        capacities = -(-np.minimum(sizes, limit) // target.lanes) * target.lanes
        ranges = np.repeat(np.cumsum(capacities) - capacities, 2)
        length = int(ranges[-1])
        indices, block = np.empty(n, np.int64), np.zeros(_HEAD + 4 * _COLUMNS * length, np.uint8)
        start, numbers = address(block), block[:_HEAD].view(np.int64)
        pointers = (address(boxes), address(indices), start + _HEAD, start + _FLOATS, start + _SELECTED)
        tables = address(cells), address(ranges), address(ends)
        numbers[:11] = (*pointers, *tables, len(ends), limit, 4 * length)
        block[_FLOATS:_HEAD].view(np.float64)[:] = (threshold, eta, overlap.offset)
        kind = overlap.bridge, eta < 1, finite
        if kind not in codes:
            codes[kind] = function(BoxSuppression(*kind), target)
        call, _ = codes[kind]
        call(start, 0, 1, None, None)
        return indices[: numbers[_SELECTED // 8]]

    return compiled


def group_cells(boxes: Array, counts: Array, offset: float, *, divided: bool) -> Array:
    """The cell of each box, from 1 on. No cell of a group is a neighbour of a cell of another group."""
    cells = np.repeat(np.arange(1, 2 * len(counts), 2), counts)
    for group in np.flatnonzero(counts >= MANY_BOXES).tolist() if divided else ():
        start = int(counts[:group].sum())
        end = start + int(counts[group])
        parts = cells_of(boxes[start:end], offset)
        cells[start:end] += parts - 1
        cells[end:] += parts.max() - 1
    return cells


def cells_of(boxes: Array, offset: float) -> Array:
    """The cell of each box, from 1 on: boxes that overlap are in the same cell or in neighbouring cells.

    The axis is the one with more cells, which are as long as the longest box. There are at most as many as boxes, and
    only one if few would not reduce the comparisons.
    """
    corners = boxes.T.astype(np.float64, order="C")
    low, high = corners[:2], corners[2:]
    least = low.min(1)
    span = low.max(1) - least
    lengths = np.maximum(np.maximum((high - low).max(1) + offset, span / len(boxes)), 1e-300)
    lengths *= 1 + 1e-6  # a margin for the rounding of quotients
    axis = int(np.argmax(span / lengths))
    if span[axis] < FEW_CELLS * lengths[axis] or np.abs(corners).max() > FARTHEST:
        return np.ones(len(boxes), np.int64)
    return ((low[axis] - least[axis]) / lengths[axis]).astype(np.int64) + 1

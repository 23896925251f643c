"""Greedy suppression of boxes: each is compared with a vector of those that stay at a time, until one overlaps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.ops.detection.boxes import IOU, Iou, Overlap, Suppress, suppress
from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.kernel import Standalone, address
from irload.plan.backends.llvm.library import function
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.vectors import Vector
from irload.record import record

_COLUMNS = 5
"""What is kept of boxes that stay, each in a column: the lower corner, the upper corner, the area."""
_NEXT, _COUNT, _THRESHOLD, _AT, _APART = range(0, 40, 8)
"""Where a call keeps the next box, how many stay, the threshold, and the place and outcome of a comparison."""
_FOUND, _FLOATS, _HEAD = 64, 72, 96
"""Where the memory of a call holds, behind its arguments, the count that is found, the f64, and the columns."""


@record()
class Suppression(Standalone):
    """Boxes [n, 4], best first → the numbers of those that stay, and how many they are.

    Arguments: the boxes; the numbers; the columns, zeros at first; threshold, factor and offset as f64; the count that
    is found; then n, the limit, and the bytes of a column. `bridge` as in `iou`; `shrinks`: the threshold is multiplied
    by the factor after each box that stays, while it is above 0.5.
    """

    bridge: bool
    shrinks: bool

    def write(self, function: Function) -> None:
        f = function
        boxes, numbers, columns, floats, found = (f.load_pointer(f["arguments"], 8 * k) for k in range(5))
        n, limit, nbytes = (f.load_int(f["arguments"], 8 * k) for k in range(5, 8))
        state = f.local(64)
        threshold = _load_double(f, floats, 0)
        for place in (_NEXT, _COUNT):
            _store(f, _integer(f, 0), state, place)
        _store(f, threshold, state, _THRESHOLD)
        offset = Vector(f, f.splat(_single(f, _load_double(f, floats, 16))))

        def is_done() -> Value:
            none_left = f.compare("sge", f.load_int(state, _NEXT), n)
            enough = f.compare("sge", f.load_int(state, _COUNT), limit)
            return f.value("i1", f"or i1 {none_left}, {enough}")

        def box(index: Value, _: list[Value]) -> None:
            own = f.at(boxes, f.multiply(index, 16))
            corners = [Vector(f, f.broadcast(own, 4 * k)) for k in range(4)]
            area = (corners[2] - corners[0] + offset) * (corners[3] - corners[1] + offset)
            self._compare(f, [*corners, area], columns, nbytes, offset, state)
            f.when(f.compare("ne", f.load_int(state, _APART), 0), lambda: stays(index, [*corners, area]))
            _store(f, f.add(index, 1), state, _NEXT)

        def stays(index: Value, values: list[Vector]) -> None:
            count = f.load_int(state, _COUNT)
            for k, value in enumerate(values):
                first = f.value("float", f"extractelement {f.vector} {value.value}, i64 0")
                f.store_scalar(first, f.at(columns, f.multiply(nbytes, k)), f.multiply(count, 4))
            _store(f, index, f.at(numbers, f.multiply(count, 8)), 0)
            _store(f, f.add(count, 1), state, _COUNT)
            if self.shrinks:
                shrink()

        def shrink() -> None:
            before = _load_double(f, state, _THRESHOLD)
            smaller = f.value("double", f"fmul double {before}, {_load_double(f, floats, 8)}")
            above = f.value("i1", f"fcmp ogt double {before}, 0.5")
            _store(f, f.select(above, smaller, before), state, _THRESHOLD)

        f.loop_until(is_done, box)
        _store(f, f.load_int(state, _COUNT), found, 0)

    def _compare(
        self, f: Function, box: list[Vector], columns: Value, nbytes: Value, offset: Vector, state: Value
    ) -> None:
        """Note whether no box that stays overlaps this one."""
        count = f.load_int(state, _COUNT)
        threshold = Vector(f, f.splat(_single(f, _load_double(f, state, _THRESHOLD))))
        _store(f, _integer(f, 0), state, _AT)
        _store(f, _integer(f, 1), state, _APART)

        def is_done() -> Value:
            beyond = f.compare("sge", f.load_int(state, _AT), count)
            overlaps = f.compare("eq", f.load_int(state, _APART), 0)
            return f.value("i1", f"or i1 {beyond}, {overlaps}")

        def turn(_: Value, __: list[Value]) -> None:
            at = f.load_int(state, _AT)
            place = f.at(columns, f.multiply(at, 4))
            others = [Vector(f, f.load(f.at(place, f.multiply(nbytes, k)))) for k in range(_COLUMNS)]
            # Greater, or no number.
            too_much = self._overlap(f, box, others, offset).compare("ugt", threshold)
            bits = f.value(f"i{f.lanes}", f"bitcast {f.booleans} {too_much} to i{f.lanes}")
            none = f.value("i1", f"icmp eq i{f.lanes} {bits}, 0")
            _store(f, f.value("i64", f"zext i1 {none} to i64"), state, _APART)
            _store(f, f.add(at, f.lanes), state, _AT)

        f.loop_until(is_done, turn)

    def _overlap(self, f: Function, box: list[Vector], others: list[Vector], offset: Vector) -> Vector:
        """`iou`, in the same operations in the same order."""
        zero = Vector(f, f.zero())
        lengths: list[Vector] = []
        for k in (0, 1):
            low, high = others[k].maximum(box[k]), others[k + 2].minimum(box[k + 2])
            length = (high - low + offset).maximum(zero)
            lengths.append(length if self.bridge else length.where(high.compare("oge", low), zero))
        common = lengths[0] * lengths[1]
        a, b = others[4], box[4]
        both = f.value(f.booleans, f"and {f.booleans} {a.compare('ogt', zero)}, {b.compare('ogt', zero)}")
        return (common / (a + b - common)).where(both, zero)


def suppressor(target: Target) -> Suppress:
    """`suppress` by compiled code where boxes are of f32 and compared by `iou`: the same boxes stay."""
    codes: dict[tuple[bool, bool], tuple[Callable[..., Any], Code]] = {}

    def compiled(
        boxes: Array, threshold: float, limit: int | None = None, *, eta: float = 1, overlap: Overlap = IOU
    ) -> Array:
        if not isinstance(overlap, Iou) or boxes.dtype != np.float32:
            return suppress(boxes, threshold, limit, eta=eta, overlap=overlap)
        n = len(boxes)
        limit = n if limit is None else min(limit, n)
        if limit <= 0 or not np.float32(0) <= np.float32(threshold):
            return np.zeros(0, np.int64)
        boxes = np.ascontiguousarray(boxes)
        length = -(-limit // target.lanes) * target.lanes
        found, block = np.empty(limit, np.int64), np.zeros(_HEAD + 4 * _COLUMNS * length, np.uint8)
        start, numbers = address(block), block[:_HEAD].view(np.int64)
        pointers = (address(boxes), address(found), start + _HEAD, start + _FLOATS, start + _FOUND)
        numbers[:8] = (*pointers, n, limit, 4 * length)
        block[_FLOATS:_HEAD].view(np.float64)[:] = (threshold, eta, overlap.offset)
        kind = overlap.bridge, eta < 1
        if kind not in codes:
            codes[kind] = function(Suppression(*kind), target)
        call, _ = codes[kind]
        call(start, 0, 1, None, None)
        return found[: numbers[_FOUND // 8]]

    return compiled


def _integer(f: Function, number: int) -> Value:
    return Value(str(number), "i64")


def _load_double(f: Function, pointer: Value, offset: int) -> Value:
    return f.value("double", f"load double, ptr {f.at(pointer, offset)}, align 8")


def _single(f: Function, double: Value) -> Value:
    return f.value("float", f"fptrunc double {double} to float")


def _store(f: Function, value: Value | int, pointer: Value, offset: int) -> None:
    """Store an i64 or a double."""
    kind = "i64" if isinstance(value, int) else value.type
    f.emit(f"store {kind} {value}, ptr {f.at(pointer, offset)}, align 8")

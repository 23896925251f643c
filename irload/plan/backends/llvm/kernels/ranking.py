"""TopK, and scatters at the positions of a TopK.

A line has a heap of its best elements. For few best elements, each lane of a vector is a line instead, and the best
elements read so far are in registers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from irload.core.size import is_size
from irload.plan.backends.llvm.arguments import WORD
from irload.plan.backends.llvm.axes import ANY, Axis, axes_of, merged, size_of, strides_key
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, I32, I64, SIZES, element_of
from irload.plan.backends.llvm.intrinsics import bits, none_of
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.blocks import BlockKernel, LineKernel, Row
from irload.plan.backends.llvm.kernels.loops import LocalIntegers
from irload.plan.backends.llvm.operands import write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tuning import FEW_BEST, LINES_BLOCK, LONG_RANKED
from irload.plan.ir.steps import ScatterStep, TopKStep
from irload.record import record

LOW = (1 << 32) - 1
"""Mask of the lower half of a key."""
GREATEST = 0x7FFFFFFF
"""All bits of an i32 but the sign."""
LEAST = -GREATEST - 1
"""The key of no element."""


def _order(value: Vec, nan: int, *, largest: bool) -> Vec:
    """Integers in the order of the elements, or in the opposite order. NaN, as `nan`, is greater than all numbers."""
    raw = (value + 0.0).bits()  # −0 and 0 are equal
    order = raw ^ ((raw >> 31) & GREATEST)
    order = order.constant(nan).where(value.compare("uno", value), order)
    return order if largest else order ^ -1


@record()
class TopK(LineKernel):
    """The `best` greatest or least of `size` elements of each line, and their positions. Pointers: x, best, positions.

    A unit is one line. A heap contains a key for each of the best elements read so far; the key of the worst element is
    at its root. The upper half of a key has the order of the elements; the lower half is greater for earlier positions,
    so that all keys differ. If elements are contiguous, vectors of them are compared with the worst element first.
    `strides`: bytes along the line, of the three tensors; `index`: bytes of a position.
    """

    optimized = True

    size: int
    best: int
    strides: tuple[int, ...]
    index: int
    largest: bool
    by_position: bool

    tensors: ClassVar[int] = 3

    @property
    def code(self) -> TopK:
        x = self.strides[0] if self.strides[0] == SIZES[F32] else ANY
        return replace(self, outer=(), size=ANY, best=ANY, strides=(x, ANY, ANY))

    @property
    def cycles(self) -> float:
        return self.count * (self.size + 40 * self.best)

    @property
    def scratch(self) -> int:
        return WORD * self.best

    def write_part(self, f: Function, given: Any, starts: list[Pointer], part: AnyInt) -> None:
        (x, y, positions), heap = starts, f["scratch"]
        size, best, strides = given.size, given.best, given.strides
        for at in f.range(0, best):
            f.store_scalar(self._key(f, x, at, strides[0]), heap, at * WORD)
        _make_heap(f, heap, best)
        self._scan(f, x, size, best, strides[0])
        if self.by_position:
            for at in f.range(0, best):
                f.store_scalar(bits(f, "and", f.load_int(heap, at * WORD), LOW), heap, at * WORD)
            _make_heap(f, heap, best)
        for popped in f.range(0, best):
            last = best - 1 - popped
            at = _worst(f, heap)
            f.store_scalar(f.load_int(heap, last * WORD), heap)
            _sink(f, heap, 0, last)
            f.store_scalar(f.load_scalar(x, at * strides[0]), y, last * strides[1])
            store = f.store_scalar if self.index == WORD else f.store_i32
            store(at, positions, last * strides[2])

    def _key(self, f: Function, x: Pointer, at: AnyInt, stride: AnyInt) -> Int:
        order = _order(f.load_scalar(x, at * stride), GREATEST, largest=self.largest)
        upper: int | Int = order.cast("sext", "i64")  # pyrefly: ignore[bad-assignment]
        return f.integer(upper * (1 << 32) + (LOW - at))

    def _scan(self, f: Function, x: Pointer, size: Int, best: Int, stride: AnyInt) -> None:
        """Read the other elements of the line; each better one replaces the worst key of the heap."""
        heap, worst = f["scratch"], f.local(SIZES[F32])

        def remember() -> None:
            f.store_scalar(f.load_scalar(x, _worst(f, heap) * stride), worst)

        def compare(at: AnyInt) -> None:
            key = self._key(f, x, at, stride)
            with f.when(key > f.load_int(heap)):
                f.store_scalar(key, heap)
                _sink(f, heap, 0, best)
                remember()

        remember()
        whole: AnyInt = best
        if self.strides[0] == SIZES[F32]:
            whole = best + (size - best) // f.lanes * f.lanes
            how = "ugt" if self.largest else "ult"  # also true for NaN; the keys then decide
            for first in f.range(best, whole, f.lanes):
                better = f.load(x, first * SIZES[F32]).compare(how, f.broadcast(worst))
                with f.when(f.equal(none_of(f, better).as_int(), 0)):
                    for lane in f.range(0, f.lanes):
                        compare(first + lane)
        for at in f.range(whole, size):
            compare(at)


def _worst(f: Function, heap: Pointer) -> AnyInt:
    """The position of the worst element in the heap."""
    return LOW - bits(f, "and", f.load_int(heap), LOW)


def _make_heap(f: Function, heap: Pointer, count: Int) -> None:
    """Arrange keys in any order as a heap."""
    half = count // 2
    for turn in f.range(0, half):
        _sink(f, heap, half - 1 - turn, count)


def _sink(f: Function, heap: Pointer, node: AnyInt, count: AnyInt) -> None:
    """Move a key down the heap until the keys of both children are greater."""
    f.call("sink", {"heap": heap, "node": node, "count": count}, _write_sink)


def _write_sink(f: Function) -> None:
    heap, count = f["heap"], f["count"]
    v = LocalIntegers(f, "at", "done")
    v["at"], v["done"] = f["node"], 0
    key = f.load_int(heap, f["node"] * WORD)
    for _ in f.until(lambda: f.differ(v["done"], 0)):
        at = v["at"]
        left = at * 2 + 1
        with f.when(left >= count):
            v["done"] = 1
        with f.otherwise():
            right = f.minimum(left + 1, count - 1)
            below, other = f.load_int(heap, left * WORD), f.load_int(heap, right * WORD)
            child, least = f.select(other < below, f.integer(right), f.integer(left)), f.minimum(below, other)
            with f.when(key < least):
                v["done"] = 1
            with f.otherwise():
                f.store_scalar(least, heap, at * WORD)
                v["at"] = child
    f.store_scalar(key, heap, v["at"] * WORD)


@record()
class TopKAcross(BlockKernel):
    """The `best` greatest or least elements of each line, and their positions. Pointers: x, best, positions.

    The rows are of lines, one per lane. Strides in bytes, of the three tensors: `axes` between lines, `along` between
    elements; the size of `along` is the length of a line of x. `index`: the type of positions. A vector of lines of x
    spans less than 2 GB.
    """

    along: Axis
    best: int
    index: str
    largest: bool
    by_position: bool

    block: ClassVar[int] = LINES_BLOCK
    times: ClassVar[int] = 1

    @property
    def code(self) -> TopKAcross:
        return replace(self, axes=(self.row,), along=Axis(ANY, (ANY, ANY, ANY)))

    @property
    def row(self) -> Axis:
        strides = strides_key(self.axes[-1], [SIZES[F32], SIZES[F32], SIZES[self.index]])
        return Axis(ANY, tuple(stride or ANY for stride in strides))

    @property
    def cycles(self) -> float:
        loads = 1 if self.axes[-1].strides[0] == SIZES[F32] else 20
        return size_of(self.axes) / self.lanes * self.along.size * (5 * self.best + loads)

    def write_vector(self, row: Row, given: TopKAcross, vector: AnyInt, count: AnyInt | None) -> None:
        f, strides, steps, (x, *results) = row.f, row.strides, given.along.strides, row.at(vector * self.lanes)
        state = [f.zero(I32).constant(LEAST), f.zero(), f.zero(I32)] * self.best  # key, value and position of each
        for at in f.range(0, given.along.size, 1, state):
            value = self._load(f, x, at * steps[0], strides[0], count)
            self._insert(state, value, f.splat(at.cast("trunc", I32)))
        if self.by_position:
            self._sort_by_position(state)
        for k in range(self.best):
            _, value, position = state[3 * k : 3 * k + 3]
            position = position if self.index == I32 else position.cast("sext", I64)
            for n, (kind, element) in enumerate(((value, F32), (position, self.index))):
                write(f, kind, results[n], k * steps[1 + n], strides[1 + n], count, element)

    def _load(self, f: Function, x: Pointer, offset: AnyInt, stride: AnyInt, count: AnyInt | None) -> Vec:
        """One element of each line. Lanes from `count` on repeat the last line, or are 0."""
        if stride == SIZES[F32]:
            return f.load(x, offset, count)
        lanes = f.numbers(range(self.lanes))
        if count is not None:
            last = f.splat(f.integer(count - 1).cast("trunc", I32))
            lanes = lanes.where(lanes.compare("slt", last), last)
        return f.gather(x + offset, lanes * f.splat(f.integer(stride).cast("trunc", I32)), unit="i8")

    def _insert(self, state: list[Vec], value: Vec, position: Vec) -> None:
        """Insert an element behind all elements that are better or equal. `state`: key, value and position of each."""
        moving = [_order(value, GREATEST - 1, largest=self.largest), value, position]
        moves = None
        for k in range(self.best):
            held = state[3 * k : 3 * k + 3]
            better = moving[0].compare("sgt", held[0])
            moves = better = better if moves is None else better | moves  # all elements behind move back by one
            for j, (new, old) in enumerate(zip(moving, held, strict=True)):
                state[3 * k + j], moving[j] = new.where(better, old), old.where(better, new)

    def _sort_by_position(self, state: list[Vec]) -> None:
        for end in range(self.best - 1, 0, -1):
            for k in range(end):
                first, second = state[3 * k : 3 * k + 3], state[3 * k + 3 : 3 * k + 6]
                swaps = second[2].compare("slt", first[2])
                for j, (a, b) in enumerate(zip(first, second, strict=True)):
                    state[3 * k + j], state[3 * k + 3 + j] = b.where(swaps, a), a.where(swaps, b)


@record()
class Scatter(LineKernel):
    """y = x with elements at positions of each line replaced. Pointers: x, positions, updates, y. A unit is one line.

    `sizes`: the elements and the updates of a line; `strides`: bytes along the line; `index`: bytes of a position.
    """

    optimized = True

    sizes: tuple[int, int]
    strides: tuple[int, ...]
    index: int

    tensors: ClassVar[int] = 4

    @property
    def code(self) -> Scatter:
        return replace(self, outer=(), sizes=(ANY, ANY), strides=(ANY,) * self.tensors)

    @property
    def cycles(self) -> float:
        return self.count * 2 * sum(self.sizes)

    def write_part(self, f: Function, given: Scatter, starts: list[Pointer], part: AnyInt) -> None:
        (x, positions, values, y), (size, updates), strides = starts, given.sizes, given.strides
        for at in f.range(0, size):
            f.store_scalar(f.load_scalar(x, at * strides[0]), y, at * strides[3])
        for at in f.range(0, updates):
            position = f.load_int(positions, at * strides[1], f"i{8 * self.index}")
            f.store_scalar(f.load_scalar(values, at * strides[2]), y, position * strides[3])


def select_top_k(step: TopKStep, selector: Selector) -> list[Launch]:
    """The kernel of a TopK."""
    arrays = x, best, positions = [selector.array(v) for v in (*step.inputs, *step.outputs)]
    lines = axes_of(best.shape, *(a.strides for a in arrays))
    line, size = lines.pop(step.axis), x.shape[step.axis]
    lines, order, lanes = merged(lines), (step.largest, step.by_position), selector.target.lanes
    is_long = line.strides[0] == SIZES[F32] and size >= LONG_RANKED
    fills = bool(lines) and lines[-1].size >= lanes and lanes * abs(lines[-1].strides[0]) < 1 << 31  # in bytes, an i32
    if is_long or is_size(line.size) or line.size > FEW_BEST or not fills:
        kernel = TopK(tuple(lines), size, line.size, line.strides, positions.itemsize, *order)
        return [selector.launch(kernel, arrays)]
    along, index = Axis(size, line.strides), element_of(positions)
    return [selector.launch(TopKAcross(lanes, tuple(lines), along, line.size, index, *order), arrays)]


def select_scatter(step: ScatterStep, selector: Selector) -> list[Launch]:
    """The kernel of a scatter."""
    arrays = x, positions, updates, _ = [selector.array(v) for v in (*step.inputs, step.output)]
    lines = axes_of(x.shape, *(a.strides for a in arrays))
    line, count = lines.pop(step.axis), updates.shape[step.axis]
    kernel = Scatter(tuple(merged(lines)), (line.size, count), line.strides, positions.itemsize)
    return [selector.launch(kernel, arrays)]

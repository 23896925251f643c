"""TopK of few elements: each lane of a vector is a line, and the best elements read so far are in registers."""

from __future__ import annotations

from dataclasses import replace

from irload.plan.backends.llvm.arguments import Arguments, moved, unknown, walk_lines
from irload.plan.backends.llvm.axes import ANY, Axis, size_of, table
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, I32, I64, SIZES
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import either
from irload.plan.backends.llvm.operands import write
from irload.record import record

GREATEST = 0x7FFFFFFF
"""All bits of an i32 but the sign."""
LEAST = -GREATEST - 1
"""The key of no element."""


@record()
class TopKAcross(Kernel):
    """The `best` greatest or least elements of each line, and their positions. Pointers: x, best, positions.

    A unit is a vector of lines. Strides in bytes, of the three tensors: `outer` and `lines` between lines, `along`
    between elements; the size of `along` is the length of a line of x. `index`: the type of positions. The code reads
    all sizes and strides; it contains the number `best`, and whether x, and both results, are contiguous across lines.
    A vector of lines of x spans less than 2 GB.
    """

    lanes: int
    outer: tuple[Axis, ...]
    lines: Axis
    along: Axis
    best: int
    index: str
    largest: bool
    by_position: bool

    @property
    def code(self) -> TopKAcross:
        lines, along = self._keys
        return replace(self, outer=(), lines=lines, along=along)

    @property
    def _keys(self) -> tuple[Axis, Axis]:
        contiguous = (SIZES[F32], SIZES[F32], SIZES[self.index])
        strides = (s if s == one else ANY for s, one in zip(self.lines.strides, contiguous, strict=True))
        return Axis(ANY, tuple(strides)), Axis(ANY, (ANY, ANY, ANY))

    @property
    def numbers(self) -> tuple[int, ...]:
        return (*unknown((self.lines, self.along), self._keys), self._vectors, *table(self.outer, 3))

    @property
    def count(self) -> int:
        return size_of(self.outer) * self._vectors

    @property
    def cycles(self) -> float:
        return self.count * self.along.size * (5 * self.best + (1 if self.lines.strides[0] == SIZES[F32] else 20))

    @property
    def _vectors(self) -> int:
        """The vectors per axis of lines."""
        return -(-self.lines.size // self.lanes)

    def write(self, function: Function) -> None:
        f, given = function, Arguments(function)
        pointers, (lines, along) = given.pointers(3), given.filled(self._keys)
        vectors, outer = given.integer(), given.table(3)
        for starts, vector in walk_lines(f, vectors, outer, pointers):
            first = vector * self.lanes
            x, *results = moved(starts, [first * s for s in lines.strides])
            rest = lines.size - first
            for count in either(f, rest < self.lanes, rest, None):
                state = [f.zero(I32).constant(LEAST), f.zero(), f.zero(I32)] * self.best
                for at in f.range(0, along.size, 1, state):
                    value = self._load(f, x, at * along.strides[0], lines.strides[0], count)
                    self._insert(state, value, f.splat(at.cast("trunc", I32)))
                if self.by_position:
                    self._sort_by_position(state)
                for k in range(self.best):
                    _, value, position = state[3 * k : 3 * k + 3]
                    position = position if self.index == I32 else position.cast("sext", I64)
                    pairs = ((value, F32), (position, self.index))
                    for to, stride, step, (vector_of, element) in zip(
                        results, lines.strides[1:], along.strides[1:], pairs, strict=True
                    ):
                        write(f, vector_of, to, k * step, stride, count, element)

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
        moving, moves = [self._key(value), value, position], None
        for k in range(self.best):
            held = state[3 * k : 3 * k + 3]
            better = moving[0].compare("sgt", held[0])
            moves = better = better if moves is None else better | moves  # all elements behind move back by one
            for j, (new, old) in enumerate(zip(moving, held, strict=True)):
                state[3 * k + j], moving[j] = new.where(better, old), old.where(better, new)

    def _key(self, value: Vec) -> Vec:
        """Integers in the order of the elements. NaN is greater than all numbers."""
        raw = (value + 0.0).bits()  # −0 and 0 are equal
        order = raw ^ ((raw >> 31) & GREATEST)
        order = order.constant(GREATEST - 1).where(value.compare("uno", value), order)
        return order if self.largest else order ^ -1

    def _sort_by_position(self, state: list[Vec]) -> None:
        for end in range(self.best - 1, 0, -1):
            for k in range(end):
                first, second = state[3 * k : 3 * k + 3], state[3 * k + 3 : 3 * k + 6]
                swaps = second[2].compare("slt", first[2])
                for j, (a, b) in enumerate(zip(first, second, strict=True)):
                    state[3 * k + j], state[3 * k + 3 + j] = b.where(swaps, a), a.where(swaps, b)

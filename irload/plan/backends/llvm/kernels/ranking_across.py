"""TopK of few elements: each lane of a vector is a line, and the best elements read so far are in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from irload.plan.backends.llvm.arguments import Arguments, moved
from irload.plan.backends.llvm.axes import ANY, Axis, size_of, strides_key
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, I32, I64, SIZES
from irload.plan.backends.llvm.kernels.blocks import BlockKernel, RowCode, VectorCode
from irload.plan.backends.llvm.operands import write
from irload.plan.backends.llvm.tuning import LINES_BLOCK
from irload.record import record

GREATEST = 0x7FFFFFFF
"""All bits of an i32 but the sign."""
LEAST = -GREATEST - 1
"""The key of no element."""


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
    def row_numbers(self) -> tuple[int, ...]:
        return self.along.size, *self.along.strides

    @property
    def cycles(self) -> float:
        loads = 1 if self.axes[-1].strides[0] == SIZES[F32] else 20
        return size_of(self.axes) / self.lanes * self.along.size * (5 * self.best + loads)

    def row_code(self, f: Function, arguments: Arguments) -> RowCode:
        size, *steps = arguments.integers(4)

        def row(addresses: list[Pointer], strides: tuple[AnyInt, ...]) -> VectorCode:
            def vector(at: AnyInt, count: AnyInt | None) -> None:
                x, *results = moved(addresses, [at * self.lanes * s for s in strides])
                state = self._ranked(f, x, size, steps[0], strides[0], count)
                for k in range(self.best):
                    _, value, position = state[3 * k : 3 * k + 3]
                    position = position if self.index == I32 else position.cast("sext", I64)
                    for n, (kind, element) in enumerate(((value, F32), (position, self.index))):
                        write(f, kind, results[n], k * steps[1 + n], strides[1 + n], count, element)

            return vector

        return row

    def _ranked(
        self, f: Function, x: Pointer, size: AnyInt, step: AnyInt, stride: AnyInt, count: AnyInt | None
    ) -> Sequence[Vec]:
        """The best elements of a vector of lines: key, value and position of each."""
        state = [f.zero(I32).constant(LEAST), f.zero(), f.zero(I32)] * self.best
        for at in f.range(0, size, 1, state):
            self._insert(state, self._load(f, x, at * step, stride, count), f.splat(at.cast("trunc", I32)))
        if self.by_position:
            self._sort_by_position(state)
        return state

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

"""Code that reads the arguments of a kernel from its table: pointers, then sizes, strides and other numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from irload.plan.backends.llvm.axes import ANY
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.record import record

WORD = 8
"""Bytes of an argument."""

T = TypeVar("T")


def float_word(number: float) -> int:
    """The bits of an f32, as an integer in `Kernel.numbers`."""
    return int(np.float32(number).view(np.uint32))


def unknown(item: Any, key: Any) -> Iterator[int]:
    """The integers of `item`, nested tuples and records, for which the key has ANY. `Arguments.filled` reads them.

    An empty tuple in the key stands for any number of items, which are not listed.
    """
    if type(key) is int:
        if key == ANY:
            yield item
    elif isinstance(key, tuple) and key:
        for part, part_key in zip(item, key, strict=True):
            yield from unknown(part, part_key)
    elif is_dataclass(key):
        for field in fields(key):
            yield from unknown(getattr(item, field.name), getattr(key, field.name))


class Arguments:
    """Emits loads of the arguments of a kernel in sequence, in the order of `Kernel.numbers`.

    `first`: the address at which to start, by default the address of the first argument.
    """

    def __init__(self, function: Function, first: Pointer | None = None) -> None:
        self._f = function
        self._next: Pointer = first or function["arguments"]

    def pointers(self, count: int) -> list[Pointer]:
        """Load pointers, the first arguments of every kernel."""
        values = [self._f.load_pointer(self._next, WORD * k) for k in range(count)]
        self._skip(count)
        return values

    def integers(self, count: int) -> list[Int]:
        """Load integers of 64 bits."""
        values = [self._f.load_int(self._next, WORD * k) for k in range(count)]
        self._skip(count)
        return values

    def integer(self) -> Int:
        """Load an integer of 64 bits."""
        (value,) = self.integers(1)
        return value

    def vectors(self, count: int) -> list[Vec]:
        """Load f32 numbers, each broadcast to all lanes of a vector."""
        values = [self._f.broadcast(self._next, WORD * k) for k in range(count)]
        self._skip(count)
        return values

    def filled(self, key: T) -> T:
        """The key, nested tuples and records, with each ANY replaced by the next integer."""
        item: Any = key
        if type(item) is int:
            return cast(T, self.integer()) if item == ANY else key
        if isinstance(item, tuple):
            return cast(T, tuple(map(self.filled, item)))
        if not is_dataclass(item) or isinstance(item, type):
            return key
        return replace(item, **{field.name: self.filled(getattr(item, field.name)) for field in fields(item)})

    @property
    def rest(self) -> Pointer:
        """The address of the next argument."""
        return self._next

    def table(self, tensors: int) -> AxisTable:
        """Load any number of axes in the form of `axes.table`. `tensors`: the number of tensors."""
        strides = self.integers(tensors)
        inner = self.integer()
        axes = AxisTable(self._f, tuple(strides), inner, self._next)
        self._skip(inner * (1 + tensors))
        return axes

    def _skip(self, count: AnyInt) -> None:
        self._next = self._next + count * WORD


@record()
class AxisTable:
    """Axes whose number, sizes and strides the code reads at run time.

    `strides`: the strides of the outermost axis, one per tensor; `inner`: the number of other axes; `listed`: the
    address of the sizes and strides of the other axes.
    """

    function: Function
    strides: tuple[AnyInt, ...]
    inner: AnyInt
    listed: Pointer

    def pointers(self, index: AnyInt, starts: Sequence[Pointer]) -> list[Pointer]:
        """The pointer to position `index` in each tensor. `starts`: the pointers to position 0.

        Positions are numbered in row-major order of all axes.
        """
        f = self.function
        state: list[Any] = [f.integer(index), *starts]
        for number in f.range(0, self.inner, 1, state):
            axis = self.listed + number * (WORD * (1 + len(starts)))
            rest, at = divmod(state[0], f.load_int(axis))
            steps = [at * f.load_int(axis, WORD * (1 + k)) for k in range(len(starts))]
            state[:] = [rest, *moved(state[1:], steps)]
        return moved(state[1:], [state[0] * stride for stride in self.strides])


def walk_lines(
    f: Function, parts: AnyInt, lines: AxisTable, pointers: Sequence[Pointer]
) -> Iterator[tuple[list[Pointer], AnyInt]]:
    """Loop over the units begin…end−1, of which each line has `parts`.

    Yields the pointers to the line in each tensor, and the index of the part. The code divides once per line, not once
    per unit.
    """
    begin: Int = f["begin"]
    end: Int = f["end"]
    for number in f.range(begin // parts, (end + parts - 1) // parts):
        starts, first = lines.pointers(number, pointers), number * parts
        for at in f.range(f.maximum(begin - first, 0), f.minimum(end - first, parts)):
            yield starts, at


def moved(pointers: Sequence[Pointer], distances: Sequence[AnyInt]) -> list[Pointer]:
    """The pointers plus distances in bytes."""
    return [p + d for p, d in zip(pointers, distances, strict=True)]

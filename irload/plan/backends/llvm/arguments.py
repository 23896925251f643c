"""The arguments of a kernel as its code reads them: pointers, then sizes, strides and other numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from irload.plan.backends.llvm.axes import ANY
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.record import record

WORD = 8
"""Bytes of an argument."""

T = TypeVar("T")


def float_word(number: float) -> int:
    """A number of f32 as `Kernel.numbers` lists it."""
    return int(np.float32(number).view(np.uint32))


def unknown(item: Any, key: Any) -> Iterator[int]:
    """The numbers of an object of tuples and records for which its key has ANY, as `Arguments.filled` reads them."""
    if type(key) is int:
        if key == ANY:
            yield item
    elif isinstance(key, tuple):
        for part, own in zip(item, key, strict=True):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            yield from unknown(part, own)
    elif is_dataclass(key):
        for field in fields(key):
            yield from unknown(getattr(item, field.name), getattr(key, field.name))


class Arguments:
    """Reads the arguments of a kernel one after another, in the order in which `Kernel.numbers` lists them.

    `first`: the address of the next one, by default of the first.
    """

    def __init__(self, function: Function, first: Pointer | None = None) -> None:
        self._f = function
        self._next: Pointer = first or function["arguments"]

    def pointers(self, count: int) -> list[Pointer]:
        """Pointers, the first arguments of every kernel."""
        found = [self._f.load_pointer(self._next, WORD * k) for k in range(count)]
        self._skip(count)
        return found

    def integers(self, count: int) -> list[Int]:
        """Numbers of 64 bits."""
        found = [self._f.load_int(self._next, WORD * k) for k in range(count)]
        self._skip(count)
        return found

    def integer(self) -> Int:
        """One number of 64 bits."""
        (found,) = self.integers(1)
        return found

    def vectors(self, count: int) -> list[Vec]:
        """Numbers of f32, each in all lanes of a vector."""
        found = [self._f.broadcast(self._next, WORD * k) for k in range(count)]
        self._skip(count)
        return found

    def filled(self, key: T) -> T:
        """An object of tuples and records with numbers read for ANY."""
        item: Any = key
        if type(item) is int:
            return self.integer() if item == ANY else item  # pyright: ignore[reportReturnType]
        if isinstance(item, tuple):
            return tuple(map(self.filled, item))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportReturnType]
        if not is_dataclass(item) or isinstance(item, type):
            return key
        return replace(item, **{field.name: self.filled(getattr(item, field.name)) for field in fields(item)})  # pyright: ignore[reportReturnType]

    @property
    def rest(self) -> Pointer:
        """The address of the next argument."""
        return self._next

    def table(self, tensors: int) -> Table:
        """Any number of axes, listed by `axes.table`."""
        strides = self.integers(tensors)
        inner = self.integer()
        found = Table(self._f, tuple(strides), inner, self._next)
        self._skip(inner * (1 + tensors))
        return found

    def _skip(self, count: AnyInt) -> None:
        self._next = self._next + count * WORD


@record()
class Table:
    """Axes whose number, sizes and strides the code reads when it runs.

    `strides`: of the outermost axis, one for each tensor; `listed`: the address of the `inner` others.
    """

    function: Function
    strides: tuple[AnyInt, ...]
    inner: AnyInt
    listed: Pointer

    def pointers(self, index: AnyInt, starts: Sequence[Pointer]) -> list[Pointer]:
        """Pointers to position `index`, counted through all axes, in each tensor; `starts` point to position 0."""
        f = self.function
        state: list[Any] = [f.integer(index), *starts]
        for number in f.range(0, self.inner, 1, state):
            place = self.listed + number * (WORD * (1 + len(starts)))
            left, at = divmod(state[0], f.load_int(place))
            steps = [at * f.load_int(place, WORD * (1 + k)) for k in range(len(starts))]
            state[:] = [left, *moved(state[1:], steps)]
        return moved(state[1:], [state[0] * stride for stride in self.strides])


def walk_lines(
    f: Function, parts: AnyInt, lines: Table, pointers: Sequence[Pointer]
) -> Iterator[tuple[list[Pointer], AnyInt]]:
    """Loop over the units begin…end−1, of which each line has `parts`: pointers to the line, and the part.

    A unit costs no division.
    """
    begin: Int = f["begin"]
    end: Int = f["end"]
    for number in f.range(begin // parts, (end + parts - 1) // parts):
        starts, first = lines.pointers(number, pointers), number * parts
        for at in f.range(f.maximum(begin - first, 0), f.minimum(end - first, parts)):
            yield starts, at


def moved(pointers: Sequence[Pointer], distances: Sequence[AnyInt]) -> list[Pointer]:
    """Pointers, each moved by a distance in bytes."""
    return [p + d for p, d in zip(pointers, distances, strict=True)]

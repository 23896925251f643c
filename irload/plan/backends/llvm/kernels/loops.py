"""Helpers that emit loops, variables in memory, and offsets of elements.

Loops are generators: the body of a `for` statement emits the body of the loop, as for `Function.range`. Their bounds
may be ints or run-time values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from irload.plan.backends.llvm.arguments import moved
from irload.plan.backends.llvm.axes import AxisLoop
from irload.plan.backends.llvm.builder import AnyBool, AnyInt, Function, Int, Pointer

Kind = TypeVar("Kind")


def repeat(
    f: Function, start: AnyInt, stop: AnyInt, step: int = 1, carried: list[Any] | None = None
) -> Iterator[AnyInt]:
    """The indices of a loop. If its bounds are ints and it has at most one iteration, no loop is emitted."""
    if isinstance(start, int) and isinstance(stop, int) and stop <= start + step:
        if start < stop:
            yield start
        return
    yield from f.range(start, stop, step, carried)


def unrolled(
    f: Function, first: AnyInt, last: AnyInt, times: int, carried: list[Any] | None = None
) -> Iterator[tuple[AnyInt, int]]:
    """The indices of a loop that is unrolled `times` times, each with its position in the unrolled body.

    The position of the indices after the unrolled loop is 0, whether their number is known or not.
    """
    length = last - first
    rest = length % times
    middle = last - rest
    if length != rest:
        for at in f.range(first, middle, times, carried):
            for k in range(times):
                yield at + k, k
    if isinstance(rest, Int):
        for at in f.range(middle, last, 1, carried):
            yield at, 0
    else:
        for k in range(rest):
            yield middle + k, 0


def nested(
    f: Function, axes: Sequence[AxisLoop], addresses: list[Pointer], carried: list[Any] | None = None
) -> Iterator[list[Pointer]]:
    """Pointers to every position of the axes, by nested loops. `addresses`: the first position in each tensor."""
    if not axes:
        yield addresses
        return
    axis, *inner = axes
    for at in f.range(0, axis.size, 1, carried):
        yield from nested(f, inner, moved(addresses, [at * s for s in axis.strides]), carried)


def first_above(f: Function, number: AnyInt, kinds: Sequence[tuple[AnyInt, Kind]]) -> Iterator[Kind]:
    """The first kind whose end is above `number`, else the last kind. The body is emitted for each kind."""
    (end, kind), *rest = kinds
    if not rest:
        yield kind
        return
    with f.when(number < end):
        yield kind
    with f.otherwise():
        yield from first_above(f, number, rest)


def either(f: Function, condition: AnyBool, first: Kind, second: Kind) -> Iterator[Kind]:
    """`first` if the condition is true, else `second`.

    The body is emitted for both, or once if they are equal or the condition is a constant.
    """
    if isinstance(condition, bool) or first == second:
        yield first if condition is not False else second
        return
    with f.when(condition):
        yield first
    with f.otherwise():
        yield second


def digits(index: AnyInt, sizes: Sequence[AnyInt]) -> tuple[AnyInt, list[AnyInt]]:
    """Divide an index into positions along axes of these sizes: the quotient by all sizes, and the positions."""
    positions: list[AnyInt] = []
    for size in reversed(sizes):
        rest = index // size
        index, at = rest, index - rest * size if size != 1 else 0
        positions.insert(0, at)
    return index, positions


def indices(index: AnyInt, sizes: Sequence[AnyInt]) -> list[AnyInt]:
    """The positions of an index along axes of these sizes. The size of the first axis is not used."""
    if not sizes:
        return []
    rest, positions = digits(index, sizes[1:])
    return [rest, *positions]


def offset(strides: Sequence[AnyInt], indices: Sequence[AnyInt]) -> AnyInt:
    """The offset of an element: its indices times the strides."""
    total: AnyInt = 0
    for stride, index in zip(strides, indices, strict=True):
        total = total + index * stride
    return total


def lines_of(f: Function, start: Pointer, stride: AnyInt, first: AnyInt, count: AnyInt) -> list[Pointer]:
    """The start of a line for each lane, from line `first` on. Lanes after the last of `count` lines repeat it."""
    last = count - 1
    return [start + f.minimum(first + lane, last) * stride for lane in range(f.lanes)]


def tail_key(size: int, step: int) -> int:
    """The size in the key of code: exact below `step`, otherwise equal for all sizes with the same remainder."""
    return size % step + (step if size >= step else 0)


def each_vector(f: Function, size: AnyInt, known: int) -> Iterator[tuple[AnyInt, int | None]]:
    """The first element of each vector of `size` elements, and its count, None for whole vectors.

    `known`: the size, or its `tail_key`.
    """
    whole, tail = size // f.lanes * f.lanes, known % f.lanes
    yield from ((at, None) for at in repeat(f, 0, whole, f.lanes) if known >= f.lanes)
    if tail:
        yield whole, tail


def each_part(f: Function, size: AnyInt, step: int) -> Iterator[tuple[AnyInt, Any]]:
    """Divide `size` elements into parts of `step` elements and a rest: the first element and the count of each part."""
    whole = size // step * step
    for at in repeat(f, 0, whole, step):
        yield at, step
    if isinstance(whole, int) and isinstance(size, int):
        for at in repeat(f, whole, size, step):
            yield at, size - whole
    else:
        with f.when(whole < size):
            yield whole, size - whole


class LocalIntegers:
    """Integers in memory, by name."""

    def __init__(self, f: Function, *names: str) -> None:
        self._f = f
        self._memory = f.local(8 * len(names))
        self._offsets = {name: 8 * k for k, name in enumerate(names)}

    def __getitem__(self, name: str) -> Int:
        return self._f.load_int(self._memory, self._offsets[name])

    def __setitem__(self, name: str, value: AnyInt) -> None:
        self._f.store_scalar(value, self._memory, self._offsets[name])

"""Loops whose bounds may be known, and offsets of elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irload.plan.backends.llvm.arguments import moved
from irload.plan.backends.llvm.axes import Loop
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Value, Vec


def repeat(f: Function, start: AnyInt, stop: AnyInt, step: int, body: Callable[[AnyInt], None]) -> None:
    """`for i in range(start, stop, step): body(i)`, without a loop if it is known to have at most one turn."""
    if isinstance(start, int) and isinstance(stop, int) and stop <= start + step:
        if start < stop:
            body(start)
        return
    f.loop(start, stop, step, lambda index, _: body(index))


def unrolled(
    f: Function,
    first: AnyInt,
    last: AnyInt,
    times: int,
    body: Callable[[AnyInt, list[Any], int], Sequence[Value] | None],
    carried: Sequence[Value] = (),
) -> list[Any]:
    """`for i in range(first, last): carried = body(i, carried, k)`, `times` per turn: k counts within a turn."""
    length = last - first
    rest = length % times
    middle = last - rest

    def turn(at: AnyInt, state: list[Any]) -> list[Any]:
        for k in range(times):
            state = list(body(at + k, state, k) or ())
        return state

    state = list(carried) if length == rest else f.loop(first, middle, times, turn, carried)
    if isinstance(rest, Int):
        return f.loop(middle, last, 1, lambda at, state: body(at, state, 0), state)
    for k in range(rest):
        state = list(body(middle + k, state, k) or ())
    return state


def nested(
    f: Function,
    axes: Sequence[Loop],
    places: list[Pointer],
    body: Callable[[list[Pointer], list[Any]], list[Any]],
    carried: list[Vec],
) -> list[Vec]:
    """`body(pointers, carried)` at every position of the axes, in loops; returns the values carried at the end."""
    if not axes:
        return body(places, carried)
    axis, *inner = axes

    def turn(at: AnyInt, carried: list[Vec]) -> list[Vec]:
        return nested(f, inner, moved(places, [at * s for s in axis.strides]), body, carried)

    return f.loop(0, axis.size, 1, turn, carried)


def digits(f: Function, index: AnyInt, sizes: Sequence[AnyInt]) -> tuple[AnyInt, list[AnyInt]]:
    """An index along axes of these sizes as positions along each; the first result is the quotient by all sizes."""
    found: list[AnyInt] = []
    for size in reversed(sizes):
        rest = index // size
        index, at = rest, index - rest * size if size != 1 else 0
        found.insert(0, at)
    return index, found


def indices(f: Function, index: AnyInt, sizes: Sequence[AnyInt]) -> list[AnyInt]:
    """The same, where the first axis may be larger than its size says."""
    if not sizes:
        return []
    rest, found = digits(f, index, sizes[1:])
    return [rest, *found]


def accumulate(
    f: Function, bounds: tuple[AnyInt, AnyInt], body: Callable[[AnyInt, list[Vec]], list[Vec]], totals: list[Vec]
) -> list[Vec]:
    """`for i in range(*bounds): totals = body(i, totals)`, without a loop for one turn."""
    if bounds == (0, 1):
        return body(0, totals)
    return f.loop(*bounds, 1, body, totals)


def offset(f: Function, strides: Sequence[AnyInt], indices: Sequence[AnyInt]) -> AnyInt:
    """The offset of an element: its indices times the strides."""
    total: AnyInt = 0
    for stride, index in zip(strides, indices, strict=True):
        total = total + index * stride
    return total


def lines_of(f: Function, start: Pointer, stride: AnyInt, first: AnyInt, count: AnyInt) -> list[Pointer]:
    """The starts of one line for each lane, from the `first` of `count` on; the last line for those beyond it."""
    last = count - 1
    return [start + f.minimum(first + lane, last) * stride for lane in range(f.lanes)]


def each_vector(f: Function, size: int, body: Callable[[AnyInt, int | None], None]) -> None:
    """`body(first element, count)` for each vector of `size` elements; `count` is None for whole vectors."""
    each_part(f, size, f.lanes, lambda at, count: body(at, None if count == f.lanes else count))


def each_part(f: Function, size: AnyInt, step: int, body: Callable[[AnyInt, Any], None]) -> None:
    """`body(first element, count)` for `step` of `size` elements at a time, then for the rest."""
    whole = size // step * step
    repeat(f, 0, whole, step, lambda at: body(at, step))
    if isinstance(whole, int) and isinstance(size, int):
        repeat(f, whole, size, step, lambda at: body(at, size - whole))
    else:
        f.when(whole < size, lambda: body(whole, size - whole))

"""Loops whose bounds may be known, and addresses of elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irload.plan.backends.llvm.builder import Function, Int, Value


def repeat(f: Function, start: Int, stop: Int, step: int, body: Callable[[Int], None]) -> None:
    """`for i in range(start, stop, step): body(i)`; no loop where there is no turn, or but one."""
    if isinstance(start, int) and isinstance(stop, int) and stop <= start + step:
        if start < stop:
            body(start)
        return
    f.loop(start, stop, step, lambda index, _: body(index))


def digits(f: Function, index: Int, sizes: Sequence[int]) -> tuple[Int, list[Int]]:
    """What is left of an index, and the positions along axes of these sizes."""
    found: list[Int] = []
    for size in reversed(sizes):
        index, at = f.divmod(index, size)
        found.insert(0, at)
    return index, found


def indices(f: Function, index: Int, sizes: Sequence[int]) -> list[Int]:
    """The same where the first axis has any size: its positions are what is left."""
    if not sizes:
        return []
    rest, found = digits(f, index, sizes[1:])
    return [rest, *found]


def accumulate(
    f: Function, bounds: tuple[Int, Int], body: Callable[[Int, list[Value]], list[Value]], totals: list[Value]
) -> list[Value]:
    """`for i in range(*bounds): totals = body(i, totals)`; no loop where there is but one turn."""
    if bounds == (0, 1):
        return body(0, totals)
    return f.loop(*bounds, 1, body, totals)


def offset(f: Function, strides: Sequence[int], indices: Sequence[Int]) -> Int:
    """Where an element lies, by the strides along some axes."""
    total: Int = 0
    for stride, index in zip(strides, indices, strict=True):
        total = f.add(total, f.multiply(index, stride))
    return total


def each_vector(f: Function, size: int, body: Callable[[Int, int | None], None]) -> None:
    """`body(first element, count)` for each vector of `size` elements; `count` is None for whole vectors."""
    each_part(f, size, f.lanes, lambda at, count: body(at, None if count == f.lanes else count))


def each_part(f: Function, size: int, step: int, body: Callable[[Int, int], None]) -> None:
    """`body(first element, count)` for `step` of `size` elements at a time, then for what is left."""
    whole = size // step * step
    repeat(f, 0, whole, step, lambda at: body(at, step))
    if whole < size:
        body(whole, size - whole)

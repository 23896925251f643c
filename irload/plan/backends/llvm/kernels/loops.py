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
    whole = size // f.lanes * f.lanes
    repeat(f, 0, whole, f.lanes, lambda at: body(at, None))
    if whole < size:
        body(whole, size - whole)

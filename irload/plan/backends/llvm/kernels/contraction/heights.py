"""The heights of the register tiles of a line of columns."""

from __future__ import annotations

from functools import lru_cache

from irload.core.size import is_size


def even_heights(columns: int, rows: int, *, free: bool = False) -> tuple[int, ...]:
    """One height, or two that differ by 1, of as few tiles of `rows` at most as possible.

    `free`: the code serves lines of other lengths, so it has two heights even if one cuts this line.
    """
    height, taller = divmod(columns, -(-columns // rows))
    if free and rows > 1 and height >= rows - 1:
        return rows, rows - 1
    return (height + 1, height) if taller else (height,)


def any_heights(rows: int) -> tuple[int, int, int]:
    """Three heights that cut nearly all lines of MANY_TILES or more. 14, 13 and 7: but for 57, 58, 64 and 71."""
    return rows, max(rows - 1, 1), max(rows // 2, 1)


def counts(columns: int, rows: int) -> tuple[int, int, int] | None:
    """The tiles of `any_heights` that cut a line of MANY_TILES or more, as few low ones as possible.

    None if they do not cut it, and if the first two do, or the first one: fewer take less time to compile.
    """
    return _counts(columns, rows) if is_size(columns) else _counts_of_number(columns, rows)


def even_block(units: int, most: int) -> int:
    """The least power of two of at least `units`, or `most` if that is less."""
    block = 1
    while block < most and block < units:
        block *= 2
    return min(block, most)


def _counts(columns: int, rows: int) -> tuple[int, int, int] | None:
    tall, middle, low = any_heights(rows)
    if columns // -(-columns // rows) >= middle:
        return None
    for few in range(3):
        rest = columns - few * low
        lines = -(-rest // tall)
        if lines * middle <= rest:
            taller = rest - lines * middle
            return taller, lines - taller, few
    return None


_counts_of_number = lru_cache(1024)(_counts)

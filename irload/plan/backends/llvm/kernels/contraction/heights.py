"""Divides a line of columns into register tiles: their heights, in columns, and the number of tiles of each height."""

from __future__ import annotations

from functools import lru_cache

from irload.core.size import is_size
from irload.plan.backends.llvm.tuning import LONG_LINE


def even_heights(columns: int, rows: int, *, free: bool = False) -> tuple[int, ...]:
    """The heights of the fewest tiles of at most `rows` columns: one, or two that differ by 1.

    `free`: lines of other lengths share the code. It always has two heights. The difference between `rows` and the
    taller is even where possible, so that lines of 15 and 16 columns, or of 27 and 28, share their code.
    """
    tiles = -(-columns // rows)
    height, taller = divmod(columns, tiles)
    if not free or rows == 1:
        return (height + 1, height) if taller else (height,)
    if taller or (rows - height) % 2:
        height += 1
    return max(height, 2), max(height, 2) - 1


def shared_columns(columns: int) -> int:
    """The columns for which the tile of a short line is chosen if lines of other lengths share the code: even, or 1."""
    return columns if columns == 1 else columns + columns % 2


def rows_of_lines(line: int, rows: int, least: int) -> int:
    """The largest divisor of the length of a line from `least` up to `rows`; `rows` if there is none.

    Tiles of this height are on one line. For lines of more than LONG_LINE tiles, `rows` is returned, since only few
    tiles are then on two lines.
    """
    if is_size(line) or line > rows * LONG_LINE:
        return rows
    return next((n for n in range(rows, least - 1, -1) if line % n == 0), rows)


def any_heights(rows: int) -> tuple[int, int, int]:
    """Three heights into which nearly all lines of MANY_TILES or more tiles can be divided.

    With 14, 13 and 7, the exceptions are lines of 57, 58, 64 and 71 columns.
    """
    return rows, max(rows - 1, 1), max(rows // 2, 1)


def counts(columns: int, rows: int) -> tuple[int, int, int] | None:
    """The number of tiles of each of `any_heights` for a line of MANY_TILES or more tiles.

    As few tiles as possible have the lowest height. None if the line cannot be divided into tiles of these heights, or
    if it can be divided into tiles of two heights that differ by 1: fewer heights take less time to compile.
    """
    return _counts(columns, rows) if is_size(columns) else _counts_of_number(columns, rows)


def even_block(units: int, most: int) -> int:
    """The smallest power of two that is not less than `units`, but at most `most`."""
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

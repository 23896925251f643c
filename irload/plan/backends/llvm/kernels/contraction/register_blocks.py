"""Contractions by register tiles: the blocking, and the numbers that code reads at run time."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from math import prod
from typing import Self

from irload.core.size import is_size
from irload.plan.backends.llvm.arguments import unknown
from irload.plan.backends.llvm.axes import ANY, any_strides
from irload.plan.backends.llvm.builder import AnyInt
from irload.plan.backends.llvm.elements import WORD
from irload.plan.backends.llvm.kernels.contraction.grid import Grid
from irload.plan.backends.llvm.kernels.contraction.heights import any_heights, counts, even_block, even_heights
from irload.plan.backends.llvm.kernels.contraction.nest import Access, Contraction
from irload.plan.backends.llvm.kernels.loops import tail_key
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.tile import SumLevel, unrolled
from irload.plan.backends.llvm.tuning import MANY_TILES, RESIDENT_WEIGHTS, SHORT_BLOCK, UNROLL, WIDENED_BLOCK
from irload.plan.backends.llvm.widening import CompressedPanel, WidenedPart
from irload.record import record


@record()
class RegisterBlocks(Contraction):
    """The blocking of a contraction by register tiles.

    A unit is a tile of at most `rows` columns by the `vectors` of a group of panels, of `panel` vectors each. A panel
    stores its weights in the order of the `levels` of the sum, whose elements are words of the dot.

    The code reads the first outer size, the columns, the channels and the depth, in the form of these numbers: tiles,
    tiles of each of the `heights`, panels, bytes of a panel. Lines of almost any length can be divided into tiles of
    three heights; shorter lines have two heights that differ by 1, or a single one. All tiles of `ragged` lines have
    `rows` columns, except for the last one, whose code reads its number of columns. If lines are `fixed`, the code is
    specialized to save LLVM up to half of the time: a line of whole tiles has a single height, and if all tiles are on
    one line of the grid, or none is, only the function for this case is compiled.

    Compiled in are the other outer sizes (divisions by constants), the channels of the last group of panels, taps, the
    parts of a sum, a short innermost level, the depth of compressed weights (their layout depends on it), and
    `heights`, `prefetch_lines` and `on_one_line`, which `code` sets. With `any_channels`, a group is one panel, whose
    channels the code reads.

    `grid`: for convolutions, the outputs in the order of the columns. `cached`: bytes of data that stay in the cache
    while weights are streamed through it. `split`: each iteration of the outermost level is a part of the sum; partial
    sums are stored in y. `widens`: the compressed weights of a panel are widened once for all tiles of a block, into
    scratch memory; otherwise each tile widens them in registers.
    """

    levels: tuple[SumLevel, ...]
    lanes: int
    vectors: int
    panel: int
    heights: tuple[int, ...] = ()
    prefetch_lines: int | None = None
    ragged: bool = False
    cached: int = SHORT_BLOCK
    split: bool = False
    widens: bool = False
    grid: Grid | None = None
    any_channels: bool = False
    fixed: bool = False
    on_one_line: bool | None = None

    @property
    def code(self) -> Self:
        known = [self.dot.weights is not None or (self.split and not k) for k in range(len(self.levels))]
        levels = tuple(
            level.key(self.levels[k + 1 :], self._turn, free=level.stride is None and not known[k])
            for k, level in enumerate(self.levels)
        )
        channels = ANY if self.any_channels else tail_key(self.channels, self.vectors * self.lanes)
        outer = (0, *self.outer[1:]) if self.outer else ()
        sizes = {"outer": outer, "weights": any_strides(self.weights), "columns": 0, "channels": channels}
        accesses = {"x": self.x.key, "y": self.y.key, "operands": tuple(operand.key for operand in self.operands)}
        tiles = {"rows": self._heights[0], "heights": self._heights, "prefetch_lines": self._prefetch_lines}
        lines = {"grid": self.grid and self.grid.key, "fixed": False, "on_one_line": self._on_one_line}
        return replace(self, levels=levels, **sizes, **accesses, **tiles, **lines)

    @property
    def numbers(self) -> tuple[int, ...]:
        if self.ragged:
            whole = self.columns // self.rows
            ends = (whole, self.columns - whole * self.rows)
        else:
            ends = (*accumulate(self._tiles_by_height[:-1]), 0, 0)[:2]
        code = self.code
        matrices = tuple(stride * self.matrix_bytes for stride in self.weights)
        strides = unknown((self._addressed, matrices), (code._addressed, code.weights))  # noqa: SLF001
        prefetched = self._length // self.parts // self._turn * self._advance  # by a tile
        sizes = self.units, self.panels, self._block, self._panel_bytes, prefetched, self._zeros, self._tiles
        last = self.channels - (self.panels - 1) * self.vectors * self.lanes
        return (*sizes, last, self._advance, *ends, *strides)

    def sized_for(self, columns: AnyInt) -> dict[int, AnyInt]:
        """The `numbers` of a ragged line of another length, by position, as far as they depend on it."""
        whole, tiles = columns // self.rows, (columns + (self.rows - 1)) // self.rows
        return {0: tiles, 6: tiles, 9: whole, 10: columns - whole * self.rows}

    @property
    def _addressed(self) -> tuple[Access, Access, tuple[Access, ...], tuple[SumLevel, ...], Grid | None]:
        """The records whose sizes and strides the code reads."""
        return self.x, self.y, self.operands, self.levels, self.grid

    @property
    def units(self) -> int:
        return prod(self.outer) * self._tiles

    @property
    def _tiles(self) -> int:
        """Tiles of one line of columns."""
        return self._line if self._counts is None else sum(self._counts)

    @property
    def _tiles_by_height(self) -> tuple[int, ...]:
        """The tiles of each of the heights, along a line that is not ragged."""
        if self._counts is not None:
            return self._counts
        *taller, lowest = self._heights
        tall = self.columns - self._line * lowest
        return (tall, self._line - tall) if taller else (self._line,)

    @property
    def _on_one_line(self) -> bool | None:
        """True if each tile is on one line of the grid, with windows inside the data; None if only some tiles are."""
        if self.grid is None or not self.fixed:
            return self.on_one_line
        length, start, cases = self.grid.windows[-1].count, 0, set[bool]()
        for height, tiles in zip(self._heights, self._tiles_by_height, strict=True):
            for k in range(min(tiles, length)):
                cases.add(bool(self.grid.on_one_line([(start + k * height) % length], height)))
                if len(cases) == 2:
                    return None
            start += tiles * height
        return cases.pop()

    @property
    def _line_axis(self) -> int:
        """The index of the grid's last axis, along which lines extend; −1 without a grid."""
        return -1 if self.grid is None else len(self.grid.windows) - 1

    @property
    def panels(self) -> int:
        return -(-self._all_vectors // self.vectors)

    @property
    def packed_channels(self) -> int:
        return self.panel * self.lanes

    @property
    def matrix_bytes(self) -> int:
        return -(-self._all_vectors // self.panel) * self._panel_bytes

    @property
    def _panel_bytes(self) -> int:
        return self.dot.nbytes(self._length, self.packed_channels)

    @property
    def parts(self) -> int:
        return self.levels[0].count if self.split else 1

    @property
    def _single(self) -> tuple[int, ...]:
        """The indices of operands that are broadcast along columns and channels: a tile reads one element of each."""
        grids = [()] * len(self.operands) if self.grid is None else self.grid.results[1:]
        return tuple(
            k
            for k, (operand, lines) in enumerate(zip(self.operands, grids, strict=True))
            if operand.column == operand.channel == 0 and not any(lines)
        )

    @property
    def cycles(self) -> float:
        products = prod(self.outer) * self.columns * self._all_vectors * self._length
        return products / self.dot.rate + self.units * self.panels * 20

    @property
    def _length(self) -> int:
        """The words of the whole sum."""
        return prod(level.count for level in self.levels)

    @property
    def _all_vectors(self) -> int:
        return -(-self.channels // self.lanes)

    @property
    def _line(self) -> int:
        """The smallest number of tiles for one line of columns."""
        return -(-self.columns // self.rows)

    @property
    def _is_free(self) -> bool:
        """True if lines of other lengths share the code."""
        return self.ragged or self.columns >= MANY_TILES * self.rows

    @property
    def _counts(self) -> tuple[int, int, int] | None:
        """The tiles of three heights, None for lines of two heights or one."""
        return counts(self.columns, self.rows) if self._is_free and not self.ragged else None

    @property
    def _heights(self) -> tuple[int, ...]:
        """The heights of the tiles of a line, the tallest first."""
        if self.heights:
            return self.heights
        if self.ragged:
            return (self.rows,)
        if self._counts is not None:
            return any_heights(self.rows)
        rest = self.columns % self.rows if self.fixed else self.rows
        is_whole = not is_size(rest) and rest == 0
        return even_heights(self.columns, self.rows, free=not is_whole and (self._is_free or not self.fixed))

    @property
    def _turn(self) -> int:
        """The elements of the sum per iteration, at least; tiles that widen words of several elements unroll more."""
        return UNROLL if self.dot.weights is not None else unrolled(self._heights[0], self.vectors)

    @property
    def _block(self) -> int:
        """The maximum number of tiles per block: their data stay in the cache while weights are streamed through it.

        If all weights stay in the cache, blocks are short. If there are fewer tiles than the maximum, their number is
        rounded up to a power of two, unless lines of other lengths share the code.
        """
        read = prod(level.read for level in self.levels) // self.parts
        weights = self.dot.nbytes(self._length, self.channels)
        streamed = read + self.channels * (1 + len(self.operands) - len(self._single))
        budget, words = (self.cached, read) if weights > RESIDENT_WEIGHTS else (SHORT_BLOCK, streamed)
        if self.widens:
            budget *= WIDENED_BLOCK
        tiles = max(1, budget // max(WORD * self.rows * words, 1))
        return tiles if self._is_free else even_block(self.units, tiles)

    @property
    def _prefetch_lines(self) -> int:
        """Cache lines of each panel of the next group that an iteration prefetches, in blocks of two tiles.

        Tiles of one row do not prefetch compressed weights: they are as fast without (Zen 5).
        """
        if self.prefetch_lines is not None:
            return self.prefetch_lines
        if self._widens_in_tile:
            return self._lines(1) if self.rows > 1 else 0
        if not self.ragged and self.units == 1:
            return 0
        return self._lines(2)

    @property
    def _advance(self) -> int:
        """Bytes of each panel of the next group that an iteration of a tile prefetches.

        All tiles of a block together prefetch the whole group, even if the block has only half of the maximum number of
        tiles.
        """
        if self._prefetch_lines == 0 or self.panels == 1 or (self._block == 1 and not self._widens_in_tile):
            return 0
        tiles = self._block if self.ragged or is_size(self.units) else min(self._block, self.units)
        return LINE * self._lines(tiles // 2 + 1)

    @property
    def _widens_in_tile(self) -> bool:
        """True if a tile widens its weights in registers: few rows share them, so memory limits its speed."""
        return self.dot.weights is not None and not self.widens and not self.dot.group

    def _lines(self, tiles: int) -> int:
        """Cache lines of a panel that an iteration of a tile prefetches if `tiles` tiles prefetch the whole panel."""
        words = max(self._turn // self.dot.members, 1)
        return -(-words * self.packed_channels * WORD // (LINE * tiles))

    @property
    def _part(self) -> WidenedPart:
        """The part of a panel that is widened before the tiles of a block use it."""
        weights = self.dot.weights
        assert weights is not None
        length = self._length * self.dot.k
        return WidenedPart(CompressedPanel(weights, length, self.packed_channels), length // self.parts, self.dot.k)

    @property
    def scratch(self) -> int:
        return self._part.nbytes if self.widens else self._zeros

    @property
    def _zeros(self) -> int:
        """The bytes of zeros that taps in the padding read."""
        if self.grid is None or not any(self.grid.padded):
            return 0
        taps = max(k for k, level in enumerate(self.levels) if level.axis is not None)
        nbytes = WORD + sum((level.count - 1) * level.x for level in self.levels[taps + 1 :] if level.count > 1)
        return -(-nbytes // LINE) * LINE

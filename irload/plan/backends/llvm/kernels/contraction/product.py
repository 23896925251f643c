"""Contractions by register tiles: rows × vectors of sums stay in registers over the whole sum and its epilogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any

from irload.plan.backends.llvm.arguments import Arguments, unknown
from irload.plan.backends.llvm.axes import ANY
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import WORD
from irload.plan.backends.llvm.kernels.contraction.grid import Grid, GridRows
from irload.plan.backends.llvm.kernels.contraction.heights import any_heights, counts, even_block, even_heights
from irload.plan.backends.llvm.kernels.contraction.nest import Access, Contraction, Turn
from irload.plan.backends.llvm.kernels.contraction.results import TileResults
from irload.plan.backends.llvm.kernels.contraction.widened import WidenedPart
from irload.plan.backends.llvm.kernels.loops import first_above, indices, offset
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.tile import Level, RegisterTile, write_sums
from irload.plan.backends.llvm.tuning import MANY_TILES, RESIDENT_WEIGHTS, SHORT_BLOCK, UNROLL, WIDENED_BLOCK
from irload.plan.backends.llvm.widening import Panel
from irload.record import record


@record()
class Product(Contraction):
    """A unit is a tile of `rows` columns at most, by the `vectors` of a group of panels, of `panel` vectors each.

    A panel holds its weights in the order of the `levels` of the sum, whose elements are words of the dot.

    The code reads the size of the first outer axis and the columns from its numbers: how many tiles there are, and of
    each of the `heights`. Three heights cut lines of almost any length; shorter lines have two that differ by 1, whole
    tiles one. `heights` and `block`, the most tiles of a block, are given for the code.

    `grid`: for convolutions, the outputs through which columns count. Tiles on one line without padding address
    neighbouring rows by known offsets, other tiles have an address for each row, of the data or of zeros.

    Compiled in are the other outer sizes (divisions by constants), channels, levels, and the strides of columns and of
    contiguous channels (immediate offsets), but not the stride of innermost taps: LLVM would load the data that
    neighbouring outputs share once, and spill sums. 3 × 3 × 3 taps of 3 channels take 0.93 ms, else 1.47 (Zen 3).

    `cached`: bytes of data that stay in the cache while weights pass through it. `split`: each turn of the outermost
    level is a part of the sum; partial sums are stored in y. `widens`: compressed weights of a panel are widened once
    for all tiles of a block, into scratch memory; else each tile widens them in registers.
    """

    levels: tuple[Level, ...]
    lanes: int
    vectors: int
    panel: int
    heights: tuple[int, ...] = ()
    block: int = 0
    cached: int = SHORT_BLOCK
    split: bool = False
    widens: bool = False
    grid: Grid | None = None

    @property
    def code(self) -> Product:
        *outer, inner = self.levels
        levels = [level if level.axis == self._lines else replace(level, x=ANY) for level in outer]
        levels.append(inner if inner == Level(inner.count, WORD) else replace(inner, x=ANY))
        return replace(
            self,
            outer=(0, *self.outer[1:]) if self.outer else (),
            columns=0,
            x=self.x.key,
            y=self.y.key,
            operands=tuple(operand.key for operand in self.operands),
            rows=self._heights[0],
            levels=tuple(levels),
            heights=self._heights,
            block=self._block,
            grid=None if self.grid is None else self.grid.key,
        )

    @property
    def numbers(self) -> tuple[int, ...]:
        if self._counts is None:
            ends: tuple[int, ...] = (self.columns - self._line * self._heights[-1],)
        else:
            tall, middle, _ = self._counts
            ends = (tall, tall + middle)
        return (self.units, *ends, self._tiles, *unknown(self._addressed, self.code._addressed))

    @property
    def sizes(self) -> int:
        return 4 if len(self._heights) == 3 else 3

    @property
    def _addressed(self) -> tuple[Access, Access, tuple[Access, ...], tuple[Level, ...], Grid | None]:
        """The records with sizes and strides that the code reads."""
        return self.x, self.y, self.operands, self.levels, self.grid

    @property
    def units(self) -> int:
        return prod(self.outer) * self._tiles

    @property
    def _tiles(self) -> int:
        """Tiles of one line of columns."""
        return self._line if self._counts is None else sum(self._counts)

    @property
    def _lines(self) -> int:
        """The axis of the grid along lines; −1 without a grid."""
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
    def _group_bytes(self) -> int:
        """The bytes of the panels of a group."""
        return self.vectors // self.panel * self._panel_bytes

    @property
    def parts(self) -> int:
        return self.levels[0].count if self.split else 1

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
        """The fewest tiles of one line of columns."""
        return -(-self.columns // self.rows)

    @property
    def _is_free(self) -> bool:
        """True if the code serves other numbers of columns."""
        return self.columns >= MANY_TILES * self.rows

    @property
    def _counts(self) -> tuple[int, int, int] | None:
        """The tiles of three heights, None for lines of two heights or one."""
        return counts(self.columns, self.rows) if self._is_free else None

    @property
    def _heights(self) -> tuple[int, ...]:
        """The heights of the tiles of a line, the tallest first."""
        if self.heights:
            return self.heights
        if self._counts is not None:
            return any_heights(self.rows)
        return even_heights(self.columns, self.rows, free=self._is_free)

    @property
    def _block(self) -> int:
        """The most tiles of a block; a power of two if there are fewer tiles, and the code does not serve more.

        Their data stay in the cache while all weights pass through it. If all weights stay there, a block is short.
        """
        if self.block:
            return self.block
        read = prod(level.read for level in self.levels) // self.parts
        weights = self.dot.nbytes(self._length, self.channels)
        streamed = read + self.channels * (1 + len(self.operands))
        room, each = (self.cached, read) if weights > RESIDENT_WEIGHTS else (SHORT_BLOCK, streamed)
        if self.widens:
            room *= WIDENED_BLOCK
        most = max(1, room // max(WORD * self.rows * each, 1))
        return most if self._is_free else even_block(self.units, most)

    @property
    def _ahead(self) -> int:
        """Cache lines of each panel of the next group that a turn of a tile prefetches: all of them over a block.

        A block may have half of the most tiles.
        """
        if self._block == 1 or self.panels == 1 or (self.dot.weights is not None and not self.widens):
            return 0
        return -(-UNROLL * self.packed_channels * WORD // (LINE * (self._block // 2 + 1)))

    @property
    def begins_panels(self) -> bool:
        return self.widens

    @property
    def _part(self) -> WidenedPart:
        """The part of a panel that is widened at once."""
        weights = self.dot.weights
        assert weights is not None
        return WidenedPart(Panel(weights, self._length, self.packed_channels), self._length // self.parts)

    @property
    def scratch(self) -> int:
        return self._part.nbytes if self.widens else self._zeros

    @property
    def _zeros(self) -> int:
        """The bytes that taps in the padding read."""
        if self.grid is None or not any(self.grid.padded):
            return 0
        taps = max(k for k, level in enumerate(self.levels) if level.axis is not None)
        nbytes = WORD + sum((level.count - 1) * level.x for level in self.levels[taps + 1 :] if level.count > 1)
        return -(-nbytes // LINE) * LINE

    def _prepare(self, f: Function) -> None:
        for at in f.range(0, self._zeros, f.target.bytes) if self._zeros else ():
            f.store(f.zero(), f["scratch"], at)

    def _read(self, given: Arguments) -> Any:
        return given.filled(self._addressed)

    def _begin_panel(self, f: Function, pointers: Sequence[Pointer], panel: Int, part: AnyInt) -> None:
        if self.widens:
            source = pointers[1] + panel * self._panel_bytes
            f.call("widen", {"panel": source, "to": f["scratch"], "part": part}, self._part.write)

    def _block_size(self, f: Function, begin: AnyInt, end: AnyInt, numbers: list[Int]) -> AnyInt:
        own = end - begin
        blocks = f.maximum((own + (self._block - 1)) // self._block, 1)
        return (own + (blocks - 1)) // blocks

    def _write_unit(self, f: Function, turn: Turn) -> None:
        """Compute the addresses of one tile, and call the function for its height."""
        ends, tiles = turn.numbers[1:-1], turn.numbers[-1]
        line, q = divmod(turn.unit, tiles) if self.outer else (0, turn.unit)
        outer = indices(f, line, self.outer)
        *taller, lowest = self._heights
        if len(taller) < 2:
            column = q * lowest + (f.minimum(q, ends[0]) if taller else 0)
        else:
            column = q * taller[0]
            for end, (height, lower) in zip(ends, pairwise(self._heights), strict=True):
                column = column - f.maximum(q - end, 0) * (height - lower)
        channel = turn.panel * (self.vectors * self.lanes)
        pointers = list(turn.pointers)
        x, y, operands, _, grid = turn.own
        at = [] if grid is None else grid.at(f, column)
        if grid is not None:
            column = 0
            pointers[0] = pointers[0] + grid.start(f, at)
            for k, strides in enumerate(grid.results):
                pointers[2 + k] = pointers[2 + k] + offset(f, strides, at)
        w: AnyInt = turn.panel * self._group_bytes
        for index, stride in zip(outer, self.weights, strict=True):
            w = w + index * (stride * self.matrix_bytes)
        panel = pointers[1] + w
        if self.widens:
            panel = f["scratch"] + turn.part * -self._part.nbytes
        places: dict[str, AnyInt | Pointer] = {"x": x.place(f, pointers[0], outer, column, channel), "w": panel}
        places["ahead"] = pointers[1] + w + self._next_panel(f, turn) if self._ahead else panel
        for name, pointer, access in zip(self._results, pointers[2:], (y, *operands), strict=True):
            places[name] = access.place(f, pointer, outer, column, channel)
        places |= {f"at{k}": index for k, index in enumerate(at)}
        places |= {"given": turn.given, "part": turn.part, "scratch": f["scratch"]}
        for height in first_above(f, q, list(zip((*ends, 0), self._heights, strict=False))):
            if grid is None:
                self._dispatch(f, height, turn.panel, places, spread=False)
                continue
            together = grid.on_one_line(f, at, height)
            with f.when(together):
                self._dispatch(f, height, turn.panel, places, spread=False)
            with f.otherwise():
                self._dispatch(f, height, turn.panel, places, spread=True)

    @property
    def _results(self) -> list[str]:
        """The parameters for y and the operands."""
        return ["y", *(f"operand{k}" for k in range(len(self.operands)))]

    def _next_panel(self, f: Function, turn: Turn) -> AnyInt:
        """The offset at which a unit prefetches the next group of panels, of which compressed ones are short."""
        lines = self._length // self.parts // UNROLL * self._ahead
        offset = (turn.unit - turn.start) * (lines * LINE)
        part = self._panel_bytes // self.parts
        if self.widens:
            offset = f.minimum(offset, part)
        return offset + turn.part * part + self._group_bytes

    def _dispatch(
        self, f: Function, height: int, group: Int, arguments: Mapping[str, AnyInt | Pointer], *, spread: bool
    ) -> None:
        """Call the function for the rows of a tile, and for a whole group of channels or the last one."""
        full = self.vectors * self.lanes
        whole, rest = divmod(self.channels, full)

        def call(channels: int) -> None:
            name = f"{'spread' if spread else 'tile'}_{height}_{channels}"
            f.call(name, arguments, lambda own: self._write_tile(own, height, channels, spread=spread))

        if whole and rest:
            with f.when(f.equal(group, whole)):
                call(rest)
            with f.otherwise():
                call(full)
        else:
            call(full if whole else rest)

    def _write_tile(self, f: Function, height: int, channels: int, *, spread: bool) -> None:
        """Write the function of a tile. `spread`: its rows may be on several lines, and windows in the padding."""
        x, y, operands, levels, grid = Arguments(f, f["given"]).filled(self._addressed)
        vectors = -(-channels // self.lanes)
        dot = replace(self.dot, weights=None) if self.widens else self.dot
        at = [f[f"at{k}"] for k in range(self._lines + 1)]
        offsets = (0,) * height if spread else tuple(k * x.column for k in range(height))
        tile = RegisterTile(offsets, vectors, self.panel, levels, self._ahead, dot)
        first, *others = zip(map(f.__getitem__, self._results), (y, *operands), strict=True)
        rows = GridRows(f, grid, at, height) if spread and grid is not None else None
        results = TileResults(self.epilogue, height, channels, first, others, rows and rows.result)
        results.ask(f)
        bounds = self._bounds(f, grid, at, rows)
        data = f["x"] if rows is None else rows.data(f["x"])
        windows = None if rows is None else rows.windowed(f["scratch"])

        def sums(start: Sequence[Vec]) -> list[Vec]:
            return write_sums(f, tile, data, f["w"], bounds, f["ahead"], start, windows)

        if self.split:
            results.write_part(f, f["part"], self.parts, sums)
        else:
            results.write(f, sums(()))

    def _bounds(
        self, f: Function, grid: Grid | None, at: Sequence[AnyInt], rows: GridRows | None
    ) -> dict[int, tuple[AnyInt, AnyInt]]:
        """The turns of levels that do not run completely. `rows`: of a tile on several lines of the `grid`."""
        found: dict[int, tuple[AnyInt, AnyInt]] = {}
        for k, level in enumerate(self.levels):
            if grid is not None and level.axis is not None and level.axis != self._lines and grid.padded[level.axis]:
                found[k] = grid.taps(f, level.axis, at) if rows is None else rows.taps(level.axis)
        if self.split:
            low, high = found.get(0, (0, self.levels[0].count))
            found[0] = f.maximum(low, f["part"]), f.minimum(high, f["part"] + 1)
        return found

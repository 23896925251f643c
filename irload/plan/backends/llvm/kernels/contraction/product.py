"""Contractions by register tiles: rows × vectors of sums stay in registers over the whole sum and its epilogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import WORD
from irload.plan.backends.llvm.kernels.contraction.heights import any_heights, counts, even_heights
from irload.plan.backends.llvm.kernels.contraction.nest import Contraction, Turn
from irload.plan.backends.llvm.kernels.contraction.results import TileResults
from irload.plan.backends.llvm.kernels.contraction.widened import WidenedPart
from irload.plan.backends.llvm.kernels.loops import first_above, indices
from irload.plan.backends.llvm.kernels.windows import emit_taps
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.tile import Level, RegisterTile, TileRow, write_sums
from irload.plan.backends.llvm.tuning import MANY_TILES, RESIDENT_WEIGHTS, SHORT_BLOCK, UNROLL, WIDENED_BLOCK
from irload.plan.backends.llvm.widening import Panel
from irload.record import record


@record()
class Product(Contraction):
    """A unit is a tile of `rows` columns at most, by the `vectors` of a group of panels, of `panel` vectors each.

    A panel holds its weights in the order of the `levels` of the sum, whose elements are words of the dot.

    The code reads the size of the first outer axis, or the columns if there are no outer axes, from its numbers: how
    many tiles there are, and of each of the `heights`. Three heights cut lines of almost any length; shorter lines have
    two that differ by 1, whole tiles one. `heights` and `block`, the most tiles of a block, are given for the code.

    Compiled in are the other outer sizes (divisions by constants), the columns of lines with padding (which rows of a
    tile read padding), channels, levels and strides (immediate offsets).

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

    @property
    def code(self) -> Product:
        if self.outer:
            return replace(self, outer=(0, *self.outer[1:]), block=self._block)
        if self._has_padding:
            return self
        return replace(self, columns=0, rows=self._heights[0], heights=self._heights, block=self._block)

    @property
    def numbers(self) -> tuple[int, ...]:
        if self._counts is None:
            return self.units, self.columns % self._line
        tall, middle, _ = self._counts
        return self.units, tall, tall + middle

    @property
    def sizes(self) -> int:
        return 3 if len(self._heights) == 3 else 2

    @property
    def units(self) -> int:
        return prod(self.outer) * self._line if self._counts is None else sum(self._counts)

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
        """Tiles of one line of columns."""
        return -(-self.columns // self.rows)

    @property
    def _has_padding(self) -> bool:
        return any(level.axis is not None for level in self.levels)

    @property
    def _is_free(self) -> bool:
        """True if the code serves other numbers of columns."""
        return not self.outer and not self._has_padding and self.columns >= MANY_TILES * self.rows

    @property
    def _counts(self) -> tuple[int, int, int] | None:
        """The tiles of three heights, None for lines of two heights or one and for lines of several outer positions."""
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
    def _limited(self) -> list[int]:
        """The levels of which a tile does not take all turns."""
        return [
            k
            for k, level in enumerate(self.levels)
            if (level.axis is not None and level.axis >= 0) or (k == 0 and self.split)
        ]

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
        return most if self._is_free else min(1 << (self.units - 1).bit_length(), most)

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
        return self._part.nbytes if self.widens else 0

    def _begin_panel(self, f: Function, pointers: Sequence[Pointer], panel: Int, part: AnyInt) -> None:
        if self.widens:
            source = pointers[1] + panel * self._panel_bytes
            f.call("widen", {"panel": source, "to": f["scratch"], "part": part}, self._part.write)

    def _block_size(self, f: Function, begin: AnyInt, end: AnyInt, numbers: list[Int]) -> AnyInt:
        own = end - begin
        blocks = f.maximum((own + (self._block - 1)) // self._block, 1)
        return (own + (blocks - 1)) // blocks

    def _write_unit(self, f: Function, turn: Turn) -> None:
        """Compute the addresses of one tile, and call the function for its kind."""
        ends = turn.numbers[1:]
        line, q = divmod(turn.unit, self._line) if self.outer else (0, turn.unit)
        outer = indices(f, line, self.outer)
        *taller, lowest = self._heights
        if len(taller) < 2:
            column = q * lowest + (f.minimum(q, ends[0]) if taller else 0)
        else:
            column = q * taller[0]
            for end, (height, lower) in zip(ends, pairwise(self._heights), strict=True):
                column = column - f.maximum(q - end, 0) * (height - lower)
        channel = turn.panel * (self.vectors * self.lanes)
        bounds = self._bounds(f, turn, outer)
        x, weights, y, *operands = turn.pointers
        w: AnyInt = turn.panel * self._group_bytes
        for index, stride in zip(outer, self.weights, strict=True):
            w = w + index * (stride * self.matrix_bytes)
        panel = weights + w
        if self.widens:
            panel = f["scratch"] + turn.part * -self._part.nbytes
        places: dict[str, AnyInt | Pointer] = {"x": self.x.place(f, x, outer, column, channel), "w": panel}
        places["ahead"] = weights + w + self._next_panel(f, turn) if self._ahead else panel
        for name, pointer, access in zip(self._results, (y, *operands), (self.y, *self.operands), strict=True):
            places[name] = access.place(f, pointer, outer, column, channel)
        self._dispatch(f, q, turn.panel, ends, {**places, **bounds})

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

    def _bounds(self, f: Function, turn: Turn, outer: list[AnyInt]) -> dict[str, AnyInt]:
        """The part of a split sum, then the turns of the `_limited` levels."""
        bounds: dict[str, AnyInt] = {"part": turn.part} if self.split else {}
        for k in self._limited:
            level = self.levels[k]
            low, high = 0, level.count
            if level.windows is not None and level.axis is not None and level.axis >= 0:
                low, high = emit_taps(f, level.windows, outer[level.axis], level.windows.size)
            if k == 0 and self.split:
                low, high = f.maximum(low, turn.part), f.minimum(high, turn.part + 1)
            bounds |= {f"first{k}": low, f"last{k}": high}
        return bounds

    def _dispatch(
        self, f: Function, q: AnyInt, group: Int, ends: Sequence[AnyInt], arguments: Mapping[str, AnyInt | Pointer]
    ) -> None:
        """Call the function for the rows of a tile, and for a whole group of channels or the last one."""
        full = self.vectors * self.lanes
        whole, rest = divmod(self.channels, full)
        for rows in first_above(f, q, self._kinds(ends)):
            if whole and rest:
                with f.when(f.equal(group, whole)):
                    self._call(f, rows, rest, arguments)
                with f.otherwise():
                    self._call(f, rows, full, arguments)
            else:
                self._call(f, rows, full if whole else rest, arguments)

    def _kinds(self, ends: Sequence[AnyInt]) -> list[tuple[AnyInt, tuple[TileRow, ...]]]:
        """Tiles of a line that run the same code: where they end, and their rows. The last ones end with the line."""
        windows = next((level.windows for level in self.levels if level.axis == -1), None)
        if windows is None:
            rows = [tuple(TileRow(k * self.x.column) for k in range(height)) for height in self._heights]
            return list(zip((*ends, 0), rows, strict=False))
        found: list[tuple[AnyInt, tuple[TileRow, ...]]] = []
        height, taller = divmod(self.columns, self._line)
        start = 0
        for q in range(self._line):
            count = height + (q < taller)
            rows = tuple(TileRow(k * self.x.column, windows.taps(start + k)) for k in range(count))
            start += count
            if found and found[-1][1] == rows:
                found.pop()
            found.append((q + 1, rows))
        return found

    def _call(
        self, f: Function, rows: tuple[TileRow, ...], channels: int, arguments: Mapping[str, AnyInt | Pointer]
    ) -> None:
        """Call the function for these rows."""
        taps = [f"{row.valid.start}.{row.valid.stop}" for row in rows if row.valid is not None]
        name = "_".join(["tile", str(len(rows)), *taps, str(channels)])
        f.call(name, arguments, lambda own: self._write_tile(own, rows, channels))

    def _write_tile(self, f: Function, rows: tuple[TileRow, ...], channels: int) -> None:
        bounds = {k: (f[f"first{k}"], f[f"last{k}"]) for k in self._limited}
        vectors = -(-channels // self.lanes)
        dot = replace(self.dot, weights=None) if self.widens else self.dot
        tile = RegisterTile(rows, vectors, self.panel, self.levels, self._ahead, dot)
        y, *operands = zip(map(f.__getitem__, self._results), (self.y, *self.operands), strict=True)
        results = TileResults(self.epilogue, len(rows), channels, y, operands)
        results.ask(f)

        def sums(start: Sequence[Vec]) -> list[Vec]:
            return write_sums(f, tile, f["x"], f["w"], bounds, f["ahead"], start)

        if self.split:
            results.write_part(f, f["part"], self.parts, sums)
        else:
            results.write(f, sums(()))

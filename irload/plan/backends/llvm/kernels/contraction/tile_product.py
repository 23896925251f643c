"""Contractions by tiles of AMX. Groups of consecutive blocks of sums share a panel of weights in the cache."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from math import prod
from typing import Self

from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer
from irload.plan.backends.llvm.expressions import expression_cycles
from irload.plan.backends.llvm.intrinsics import prefetch_slowly
from irload.plan.backends.llvm.kernel import Streamed
from irload.plan.backends.llvm.kernels.contraction.chunks import Chunks
from irload.plan.backends.llvm.kernels.contraction.nest import SHARE_PANELS, Contraction, Turn
from irload.plan.backends.llvm.kernels.contraction.tile_epilogue import TileEpilogue
from irload.plan.backends.llvm.kernels.loops import indices
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.tiles import Tiles
from irload.plan.backends.llvm.tuning import TILE_AHEAD, TILE_DATA, TILE_NEAR, TILE_PANEL
from irload.record import record

_DATA, _WEIGHTS = 4, 6
"""The indices of the first tile of data, and of the first tile of weights. Tiles before these are sums."""


@record()
class _TileSizes:
    """The `numbers` of the kernel."""

    units: Int
    panels: Int
    blocks: Int
    last_strip: Int
    last_column: Int
    """The first column of the last strip of a line."""
    group: Int
    lines: Int


@record()
class TileProduct(Contraction):
    """A contraction by tiles of AMX. A strip of `rows` columns by 16 channels of sums is a tile.

    A unit is a block of sums: `height` strips of `rows` columns by a panel of `width` tiles of channels. The sum has
    one step per tap and chunk of 32 channels in bf16. `taps`: for each tap, the offset in bytes from the row of x of an
    output to the row that the tap multiplies. Weights are in panels [chunk, tap, tile, 16 pairs of channels of x, 16
    channels of y, 2]. Outer axes with separate weights come first. The last strip of a line overlaps the previous one
    if `rows` does not divide the columns.

    The code reads the size of the first outer axis with separate weights and of the first one without, or the columns
    if each outer axis has separate weights. Compiled in are the other outer sizes and the columns of each line
    (divisions by constants), channels, chunks, taps, and `fixed`.

    The epilogue of a block is computed between the products of the next block (software pipelining), so that vector
    instructions and AMX overlap.
    """

    chunks: Chunks
    taps: tuple[int, ...]
    height: int
    width: int
    fixed: int | None = None
    """Cache lines of later weights that each step prefetches; 0 if the code reads this number. Set by `code`."""

    reads_beyond = True

    @property
    def code(self) -> Self:
        sizes = tuple(0 if k in (0, self.separate_axes) else size for k, size in enumerate(self.outer))
        columns = self.columns if len(sizes) > self.separate_axes else 0
        return replace(self, outer=sizes, columns=columns, fixed=self.lines_fixed)

    @property
    def numbers(self) -> tuple[int, ...]:
        last_column = self.columns - self.rows
        return self.units, self.panels, self.blocks, self._strips - 1, last_column, self.group, self._lines

    @property
    def units(self) -> int:
        return prod(self.outer[: self.separate_axes]) * self.blocks

    @property
    def panels(self) -> int:
        return -(-self.channels // self.packed_channels)

    @property
    def matrix_bytes(self) -> int:
        return self.panels * self.panel_bytes

    @property
    def panel_bytes(self) -> int:
        """The bytes of a panel."""
        return self.steps * self.step_bytes

    @property
    def step_bytes(self) -> int:
        """The bytes of weights of a step."""
        return self.width * tiles.NBYTES

    @property
    def steps(self) -> int:
        """The steps of a sum: the rows of x that are multiplied for one row of sums."""
        return self.chunks.count * len(self.taps)

    @property
    def packed_channels(self) -> int:
        return self.width * tiles.ROWS

    @property
    def line(self) -> int:
        """Strips of one line of columns."""
        return -(-self.columns // self.rows)

    @property
    def separate_axes(self) -> int:
        """The number of outer axes with separate weights."""
        return sum(stride != 0 for stride in self.weights)

    @property
    def _strips(self) -> int:
        """Strips that share their weights."""
        return prod(self.outer[self.separate_axes :]) * self.line

    @property
    def blocks(self) -> int:
        """Blocks of sums, along columns, that share their weights."""
        return -(-self._strips // self.height)

    @property
    def is_near(self) -> bool:
        """True if all weights stay in the L1 cache."""
        return self.matrix_bytes <= TILE_NEAR

    @property
    def group(self) -> int:
        """The number of consecutive blocks that use one panel before the next panel. Their data fit into the cache.

        All blocks are one group if reading their data again for each panel takes less time than reading the weights
        again for each group.
        """
        if self.is_near:
            return 1
        most = max(1, bisect_right(range(1, self.blocks + 1), TILE_DATA, key=self.reads))
        weights = (-(-self.blocks // most) - 1) * self.matrix_bytes
        data = (self.panels - 1) * self.reads(self.blocks)
        return self.blocks if self.panel_bytes <= TILE_PANEL and data < weights else most

    def reads(self, blocks: int) -> int:
        """An upper bound of the bytes of data that the first `blocks` blocks read; overlapping windows count once."""
        strips = blocks * self.height
        columns, lines = min(self.columns, strips * self.rows), -(-strips // self.line)
        span = max(self.taps) - min(self.taps) + (columns - 1) * self.x.column + tiles.BYTES
        separate = 1  # parts without common data, such as samples
        for size, stride in reversed([*zip(self.outer, self.x.outer, strict=True)][self.separate_axes :]):
            if stride > span + self.chunks.last:
                separate *= min(lines, size)
            else:
                span += (min(lines, size) - 1) * stride
            lines = -(-lines // size)
        chunk = min(span, -(-strips // separate) * self.rows * len(self.taps) * tiles.BYTES)
        return separate * min(chunk * self.chunks.count, span + self.chunks.last)

    @property
    def early(self) -> int:
        """The steps between prefetching weights and reading them: a whole panel, if several blocks use it."""
        return min(self.steps, TILE_AHEAD // self.step_bytes) if self.alone else self.steps

    @property
    def streamed(self) -> Streamed:
        ahead = 0 if self.is_near else self.early * self.step_bytes
        return Streamed(1, self.weight_bytes, self.panels if self.shared == SHARE_PANELS else 1, ahead)

    @property
    def _lines(self) -> int:
        """Cache lines of later weights that each step prefetches."""
        return 0 if self.is_near else -(-self.step_bytes // LINE // self.group)

    @property
    def lines_fixed(self) -> int:
        """The number of lines that a step prefetches, if it is a constant of the code; otherwise 0.

        It is a constant if one block, or many blocks, use a panel. A loop over a number that the code reads takes 5 %
        of the time.
        """
        if self.fixed is not None:
            return self.fixed
        return self._lines if self._lines in (1, 2, self.step_bytes // LINE) else 0

    @property
    def alone(self) -> bool:
        """True if no two consecutive blocks use the same panel."""
        return self.is_near or self.lines_fixed == self.step_bytes // LINE

    @property
    def cycles(self) -> float:
        blocks = self.units * self.panels * self.height * self.width
        finish = self.rows * (2 + expression_cycles(self.epilogue))
        return blocks * max(self.steps * max(self.rows + 1, 9), finish)

    @property
    def scratch(self) -> int:
        return self._block_epilogue.nbytes + tiles.STATE

    @property
    def _block_epilogue(self) -> TileEpilogue:
        """The epilogue of blocks of sums."""
        return TileEpilogue(self.rows, self.height, self.width, self.channels, self.y, self.operands, self.epilogue)

    def _read(self, arguments: Arguments) -> _TileSizes:
        return _TileSizes(*arguments.integers(7))

    def _prepare(self, f: Function, sizes: _TileSizes) -> None:
        self._block_epilogue.begin(f, f["scratch"])
        width = self.chunks.nbytes
        shapes = [(self.rows, tiles.BYTES)] * _DATA + [(self.rows, width)] * 2 + [(width // 4, tiles.BYTES)] * 2
        self._registers(f).configure(shapes)

    def _complete(self, f: Function) -> None:
        epilogue = self._block_epilogue
        epilogue.finish(f, f["scratch"], 0, epilogue.waiting(f, f["scratch"]))
        self._registers(f).release()

    def _registers(self, f: Function) -> Tiles:
        """The tiles. Emulated tiles are in memory after the sums."""
        return Tiles(f, f["scratch"] + self._block_epilogue.nbytes, self.dot)

    def _block_size(self, f: Function, begin: AnyInt, end: AnyInt, sizes: _TileSizes) -> AnyInt:
        return sizes.group

    def _write_unit(self, f: Function, turn: Turn) -> None:
        sizes: _TileSizes = turn.sizes
        weights, strips, sources, results = self._block_operands(f, turn, sizes)
        ahead = self._address_ahead(f, turn, weights, sizes)
        weights = weights + turn.panel * self.panel_bytes
        rows = {f"x{k}": source for k, source in enumerate(sources)}
        arguments = {"w": weights, "ahead": ahead, "lines": sizes.lines, "scratch": f["scratch"]}
        f.call("sum", {**rows, **arguments}, self._write_sum)
        self._block_epilogue.set_waiting(f, f["scratch"], turn.panel, strips, results)

    def _block_operands(
        self, f: Function, turn: Turn, sizes: _TileSizes
    ) -> tuple[Pointer, AnyInt, list[Pointer], list[Pointer]]:
        """The operands of a block: its weights, its number of strips, and for each strip x, then y and the operands.

        If the last block has fewer strips, its last strip is computed several times.
        """
        rest, block = divmod(turn.unit, sizes.blocks) if self.separate_axes else (0, turn.unit)
        strips = f.minimum(sizes.last_strip + 1 - block * self.height, self.height)
        separate = indices(rest, self.outer[: self.separate_axes])
        channel = turn.panel * self.packed_channels
        x, weights, *pointers = turn.pointers
        for index, stride in zip(separate, self.weights, strict=False):
            weights = weights + index * (stride * self.matrix_bytes)
        sources: list[Pointer] = []
        results: list[Pointer] = []
        for k in range(self.height):
            strip = f.minimum(block * self.height + k, sizes.last_strip)
            line, q = divmod(strip, self.line) if self.columns else (0, strip)
            outer = [*separate, *indices(line, self.outer[self.separate_axes :])]
            column = f.minimum(q * self.rows, sizes.last_column)
            accesses = (self.x, self.y, *self.operands)
            source, *addresses = (
                access.address(pointer, outer, column, channel)
                for pointer, access in zip((x, *pointers), accesses, strict=True)
            )
            sources.append(source)
            results += addresses
        return weights, strips, sources, results

    def _address_ahead(self, f: Function, turn: Turn, weights: Pointer, sizes: _TileSizes) -> Pointer:
        """The address of the part of the next panel that a block prefetches; the blocks of a group prefetch all of it.

        The last panel is followed by the first one, or by the first panel of the next kernel (`final`). The address is
        always mapped, since prefetching an unmapped address costs a walk of the page tables.
        """
        block = turn.unit - turn.start
        part = sizes.lines * (self.steps * LINE)
        following = f.integer(turn.panel + 1)
        start = weights + f.select(following < sizes.panels, following, f.integer(0)) * self.panel_bytes
        if turn.final is not None:
            start = f.select(turn.final, f["ahead"], start)
        return start + f.minimum(block * part, self.panel_bytes - part)

    def _prefetch(self, f: Function, step: Int) -> None:
        """Emit the prefetches of a step, in a function with the parameters `w`, `ahead` and `lines`.

        The first steps may prefetch weights of the same panel, the others weights of the next panel.
        """
        if self.is_near:
            return
        late, lines = self.steps - self.early, self.lines_fixed or f["lines"]
        ahead = f["ahead"] + (step - late) * lines * LINE
        if late:
            same = f["w"] + (step + self.early) * self.step_bytes
            ahead = f.select(step < late, same, ahead)
        if self.alone:
            prefetch_slowly(f, ahead, self.lines_fixed)
            return
        for line in f.range(0, lines) if isinstance(lines, Int) else range(lines):
            f.prefetch(ahead, line * LINE)

    def _offset(self, f: Function, step: Int) -> AnyInt:
        """The offset in bytes from the row of x of an output to the row that is multiplied in a step."""
        if len(self.taps) == 1:
            offset = step * self.chunks.stride
            return (f.minimum(offset, self.chunks.last) if self.chunks.overlap else offset) + self.taps[0]
        offsets = [self.chunks.offset(chunk) + tap for chunk in range(self.chunks.count) for tap in self.taps]
        return f.load_int(f.table("offsets", offsets), step * 8)

    def _write_sum(self, f: Function) -> None:
        """Write the function that sums one block."""
        memory, epilogue, registers = f["scratch"], self._block_epilogue, self._registers(f)
        waiting = epilogue.waiting(f, memory)
        rows = self.height * self.rows
        part = -(-rows // self.steps)
        registers.zero(self.height * self.width)
        for k in f.range(0, self.steps):
            offset = self._offset(f, k)
            w = f["w"] + k * self.step_bytes
            for a in range(self.height):
                data = _DATA + a % 2
                registers.load(data, f[f"x{a}"] + offset, self.x.column)
                for b in range(self.width):
                    if a == 0:
                        registers.load(_WEIGHTS + b, w + b * tiles.NBYTES, tiles.BYTES, once=self.alone)
                    registers.dot(a * self.width + b, data, _WEIGHTS + b)
            self._prefetch(f, k)
            first = k * part
            stop = f.minimum(first + part, waiting)
            with f.when(first < stop):
                epilogue.finish(f, memory, first, stop)
        row = self.width * tiles.BYTES
        registers.store_block(self.height, self.width, epilogue.free(f, memory), self.rows * row, row)
        epilogue.stored(f, memory)

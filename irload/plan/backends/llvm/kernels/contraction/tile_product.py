"""Contractions by tiles of AMX: the code, in which the epilogue of a block overlaps the products of the next one."""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer
from irload.plan.backends.llvm.expressions import expression_cycles
from irload.plan.backends.llvm.intrinsics import prefetch_slowly
from irload.plan.backends.llvm.kernels.contraction.nest import Turn
from irload.plan.backends.llvm.kernels.contraction.tile_blocks import TileBlocks
from irload.plan.backends.llvm.kernels.contraction.tile_epilogue import TileEpilogue
from irload.plan.backends.llvm.kernels.loops import indices
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.tiles import Tiles
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
class TileProduct(TileBlocks):
    """The code of a contraction by tiles of AMX. A strip of `rows` columns by 16 channels of sums is a tile.

    The epilogue of a block is computed between the products of the next block (software pipelining), so that vector
    instructions and AMX overlap.
    """

    reads_beyond = True

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

    def _prepare(self, f: Function, numbers: Sequence[Int]) -> None:
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

    def _block_size(self, f: Function, begin: AnyInt, end: AnyInt, numbers: list[Int]) -> AnyInt:
        return _TileSizes(*numbers).group

    def _write_unit(self, f: Function, turn: Turn) -> None:
        sizes = _TileSizes(*turn.numbers)
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
                access.address(f, pointer, outer, column, channel)
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
        for sums in range(self.height * self.width):
            registers.zero(sums)
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
        free = epilogue.free(f, memory)
        for a in range(self.height):
            for b in range(self.width):
                address = free + (a * self.rows * self.width + b) * tiles.BYTES
                registers.store(a * self.width + b, address, self.width * tiles.BYTES)
        epilogue.stored(f, memory)

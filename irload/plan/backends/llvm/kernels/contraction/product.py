"""Contractions by register tiles: the code. The accumulators of a tile stay in registers during the whole sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.kernels.contraction.grid import Grid, GridRows, LineRows
from irload.plan.backends.llvm.kernels.contraction.nest import Turn
from irload.plan.backends.llvm.kernels.contraction.register_blocks import RegisterBlocks
from irload.plan.backends.llvm.kernels.contraction.register_epilogue import RegisterEpilogue
from irload.plan.backends.llvm.kernels.loops import either, first_above, indices, offset
from irload.plan.backends.llvm.tile import RegisterTile, write_sums
from irload.record import record


@record()
class _RegisterSizes:
    """The numbers of the kernel."""

    units: Int
    panels: Int
    block: Int
    """The maximum number of tiles per block."""
    panel_bytes: Int
    prefetched: Int
    zeros: Int
    tiles: Int
    last: Int
    """Channels of the last panel."""
    advance: Int
    """Bytes of the next panels that an iteration of a tile prefetches; 0 if tiles do not prefetch."""
    ends: tuple[Int, Int]
    """The number of tiles of a line that are at least as high as each height but the lowest.

    For a ragged line: its whole tiles, and the columns of its last tile.
    """
    rest: Pointer
    """The address of the numbers that follow, which functions of tiles read, too."""
    addressed: Any
    matrices: tuple[AnyInt, ...]


@record()
class Product(RegisterBlocks):
    """The code of a contraction by register tiles.

    A tile on one line without padding has one address and a row stride; other tiles have an address per row. Taps in
    the padding have the address of zeros.
    """

    def _read(self, arguments: Arguments) -> _RegisterSizes:
        *numbers, whole, last = arguments.integers(11)
        rest = arguments.rest
        addressed, matrices = arguments.filled((self._addressed, self.weights))
        return _RegisterSizes(*numbers, ends=(whole, last), rest=rest, addressed=addressed, matrices=matrices)

    def _prepare(self, f: Function, sizes: _RegisterSizes) -> None:
        if self.grid is not None and any(self.grid.padded):
            for at in f.range(0, sizes.zeros, f.target.bytes):
                f.store(f.zero(), f["scratch"], at)

    def _begin_panel(
        self, f: Function, pointers: Sequence[Pointer], sizes: _RegisterSizes, panel: Int, part: AnyInt
    ) -> None:
        if self.widens:
            source = pointers[1] + panel * sizes.panel_bytes
            f.call("widen", {"panel": source, "to": f["scratch"], "part": part}, self._part.write)

    def _block_size(self, f: Function, begin: AnyInt, end: AnyInt, sizes: _RegisterSizes) -> AnyInt:
        units, block = end - begin, sizes.block
        blocks = f.maximum((units + (block - 1)) // block, 1)
        return (units + (blocks - 1)) // blocks

    def _write_unit(self, f: Function, turn: Turn) -> None:
        """Compute the addresses of one tile, and call the function for its height."""
        sizes: _RegisterSizes = turn.sizes
        line, q = divmod(turn.unit, sizes.tiles) if self.outer else (0, turn.unit)
        outer = indices(line, self.outer)
        *taller, lowest = self._heights
        if len(taller) < 2:
            column = q * lowest + (f.minimum(q, sizes.ends[0]) if taller else 0)
        else:
            column = q * taller[0]
            for end, (height, lower) in zip(sizes.ends, pairwise(self._heights), strict=True):
                column = column - f.maximum(q - end, 0) * (height - lower)
        channel = turn.panel * (self.vectors * self.lanes)
        pointers = list(turn.pointers)
        x, y, operands, _, grid = sizes.addressed
        position = [] if grid is None else grid.position(column)
        if grid is not None:
            column = 0
            pointers[0] = pointers[0] + grid.start(position)
            for k, strides in enumerate(grid.results):
                pointers[2 + k] = pointers[2 + k] + offset(strides, position)
        group = self.vectors // self.panel * sizes.panel_bytes
        w = turn.panel * group + offset(sizes.matrices, outer)
        panel = pointers[1] + w
        if self.widens:
            panel = f["scratch"] + turn.part * -self._part.nbytes
        arguments: dict[str, AnyInt | Pointer] = {"x": x.address(pointers[0], outer, column, channel), "w": panel}
        arguments["ahead"] = panel
        if self._prefetch_lines:
            following = pointers[1] + (w + group) + self._next_panel(f, turn, sizes)
            arguments["ahead"] = f.select(f.equal(sizes.advance, 0), panel, following)
            arguments["advance"] = sizes.advance
        for name, pointer, access in zip(self._pointer_names, pointers[2:], (y, *operands), strict=True):
            arguments[name] = access.address(pointer, outer, column, channel)
        arguments |= {f"at{k}": index for k, index in enumerate(position)}
        arguments["given"] = sizes.rest
        if self.split:
            arguments["part"] = turn.part
        if grid is not None:
            arguments["zeros"] = f["scratch"]
        if self.any_channels:
            arguments["channels"] = sizes.last
        last = f.equal(turn.panel + 1, sizes.panels)
        heights: tuple[int | None, ...] = (*self._heights, None) if self.ragged else self._heights
        ends = [*sizes.ends[: len(heights) - 1], 0]
        for height in first_above(f, q, list(zip(ends, heights, strict=True))):
            if self.ragged:
                arguments["count"] = sizes.ends[1] if height is None else f.integer(height)
            if height is None:
                self._dispatch(f, self.rows, last, arguments, spread=True)
            elif grid is None:
                self._dispatch(f, height, last, arguments, spread=False)
            else:
                on_one_line = grid.on_one_line(position, height) if self.on_one_line is None else self.on_one_line
                for spread in either(f, on_one_line, False, True):
                    self._dispatch(f, height, last, arguments, spread=spread)

    @property
    def _pointer_names(self) -> list[str]:
        """The parameters for y and the operands."""
        return ["y", *(f"operand{k}" for k in range(len(self.operands)))]

    def _next_panel(self, f: Function, turn: Turn, sizes: _RegisterSizes) -> AnyInt:
        """The offset in the next group of panels from which a unit prefetches.

        For compressed weights, whose panels are short, it is at most the size of a part.
        """
        offset = (turn.unit - turn.start) * sizes.prefetched
        part = sizes.panel_bytes // self.parts
        if self.dot.weights is not None:
            offset = f.minimum(offset, part)
        return offset + turn.part * part

    def _dispatch(
        self, f: Function, height: int, last: Bool, arguments: Mapping[str, AnyInt | Pointer], *, spread: bool
    ) -> None:
        """Call the function of tiles of `height` rows, for a whole group of channels or the last one."""
        full = self.vectors * self.lanes
        whole, rest = (1, None) if self.any_channels else divmod(self.channels, full)

        for channels in either(f, last, full if rest == 0 else rest, full if whole else rest):
            name = f"{'spread' if spread else 'tile'}_{height}_{'any' if channels is None else channels}"
            f.call(name, arguments, partial(self._write_tile, height=height, channels=channels, spread=spread))

    def _write_tile(self, f: Function, height: int, channels: int | None, *, spread: bool) -> None:
        """Write the function of a tile.

        `channels`: None if the function reads their number. `spread`: the rows of the tile may be on several lines, its
        windows may extend into the padding, and its last rows may be beyond the end of a ragged line.
        """
        x, y, operands, levels, grid = Arguments(f, f["given"]).filled(self._addressed)
        vectors = self.vectors if channels is None else -(-channels // self.lanes)
        dot = replace(self.dot, weights=None) if self.widens else self.dot
        position = [f[f"at{k}"] for k in range(self._line_axis + 1)]
        advance = f["advance"] if self._prefetch_lines else None
        tile = RegisterTile(
            height, x.column, vectors, self.panel, levels, self._prefetch_lines, dot, advance, self._turn
        )
        first, *others = zip(map(f.__getitem__, self._pointer_names), (y, *operands), strict=True)
        count = f["count"] if self.ragged else height
        rows = windows = None
        if spread and grid is None:
            rows = LineRows(f, [access.column for access in (x, y, *operands)], height, count)
        elif spread and grid is not None:
            rows = GridRows(f, grid, position, height, count)
            windows = rows.windowed(f["zeros"])
        last = f["channels"] if channels is None else None
        channels = channels or vectors * self.lanes
        epilogue = RegisterEpilogue(
            self.epilogue, height, channels, first, others, self._single, None if rows is None else rows.result, last
        )
        epilogue.prefetch(f)
        bounds = self._bounds(f, grid, position, rows if isinstance(rows, GridRows) else None)
        data = [f["x"]] if rows is None else rows.data(f["x"])

        def sums(start: Sequence[Vec]) -> list[Vec]:
            if dot.group:
                from irload.plan.backends.llvm.tile_groups import write_grouped_sums  # not needed by f32

                return write_grouped_sums(f, tile, data, f["w"], f["ahead"])
            return write_sums(f, tile, data, f["w"], bounds, f["ahead"], start, windows)

        if self.split:
            epilogue.write_part(f, f["part"], self.parts, sums)
        else:
            epilogue.write(f, sums(()))

    def _bounds(
        self, f: Function, grid: Grid | None, position: Sequence[AnyInt], rows: GridRows | None
    ) -> dict[int, tuple[AnyInt, AnyInt]]:
        """The ranges of the levels that skip iterations: taps in the padding, and other parts of the sum.

        `rows`: the rows of a tile on several lines of the `grid`, else None.
        """
        bounds: dict[int, tuple[AnyInt, AnyInt]] = {}
        for k, level in enumerate(self.levels):
            axis = level.axis
            if grid is None or axis is None or not grid.padded[axis]:
                continue
            if rows is not None and (axis != self._line_axis or grid.skips(len(rows.positions))):
                bounds[k] = rows.taps(axis)
            elif rows is None and axis != self._line_axis:
                bounds[k] = grid.taps(f, axis, position)
        if self.split:
            low, high = bounds.get(0, (0, self.levels[0].count))
            bounds[0] = f.maximum(low, f["part"]), f.minimum(high, f["part"] + 1)
        return bounds

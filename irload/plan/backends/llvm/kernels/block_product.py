"""Products of data in bf16 with packed weights, block by block: what all ways to sum a block have in common."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from dataclasses import replace
from math import prod
from typing import Self

from irload.plan.backends.llvm import bfloat16, tiles
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel, Streamed
from irload.plan.backends.llvm.kernels.access import Access
from irload.plan.backends.llvm.kernels.loops import indices
from irload.plan.backends.llvm.target import LINE
from irload.plan.ir.expression import Expression
from irload.record import record

CACHED = 768 * 1024
"""Bytes of data that stay in the second level of the cache while weights go by."""
LARGEST = 1280 * 1024
"""Bytes of a panel that stays there while all data go by: 2048 channels of 28 × 28 by 3 × 3 take 13 ms so, else 20."""
FAR = 64 * 1024
"""The most bytes by which weights that one block meets are asked for before it reads them.

Those asked for a panel early are gone when they are read: 25088 × 4096 weights take 21 ms, else 15.
"""
NEAR = 32 * 1024
"""Bytes of weights that stay in the first level while data go by."""


@record()
class Chunks:
    """How the `depth` channels of a position lie: chunks of 32, `stride` bytes apart.

    The last chunk is `last` bytes behind the first: where tiles read data that are not copied, it overlaps the one
    before, and the weights of what is read twice are 0. `nbytes`: those of a row of a tile.
    """

    depth: int
    stride: int
    last: int
    nbytes: int = tiles.BYTES

    @staticmethod
    def copied(depth: int, stride: int) -> Chunks:
        """In a copy, in which the last chunk is filled up with zeros."""
        return Chunks(depth, stride, (-(-depth // tiles.DEPTH) - 1) * stride)

    @staticmethod
    def in_place(depth: int, *, tiled: bool) -> Chunks:
        """Beside each other in the data themselves. `tiled`: for tiles."""
        if not tiled:
            return Chunks.copied(depth, tiles.BYTES)
        nbytes = min(depth * bfloat16.BYTES, tiles.BYTES)
        return Chunks(depth, tiles.BYTES, depth * bfloat16.BYTES - nbytes, nbytes)

    @property
    def count(self) -> int:
        """The chunks."""
        return -(-self.depth // tiles.DEPTH)

    @property
    def overlap(self) -> bool:
        """True where the last chunk overlaps the one before."""
        return self.last != (self.count - 1) * self.stride

    def offset(self, chunk: int) -> int:
        """The bytes from the first chunk to this one."""
        return min(chunk * self.stride, self.last)


@record()
class Sizes:
    """What the code of a product reads at run time: its `numbers`."""

    units: Value
    blocks: Value
    """Those along columns that share their weights."""
    last_strip: Value
    last_column: Value
    """The first column of the last strip of a line."""
    group: Value
    lines: Value


@record()
class BlockProduct(Kernel):
    """y[outer…, column, channel] = epilogue(Σ x · w, operands). Pointers: x, w, y, then the operands.

    x is in bf16: rows of 32 channels, one for each column, tap and chunk. w is in panels [chunk,
    tap, tile, 16 pairs of channels of x, 16 channels of y, 2], `weights` bytes apart along the outer axes, of which
    those with weights of their own are first. `element`: the type of x and w.

    A strip is `rows` columns that follow each other; the last one of a line may overlap the one before, so that y may
    be an operand only where none does. A block of sums is `height` strips by the `width` tiles of a panel. `shared`:
    what threads take parts of, the `rows` of blocks or the `panels`.

    Kernels for any size of the first outer axes, of those with weights of their own and of the others, or for any
    number of columns where there are no others, have 0 in its place, and `fixed` is given.
    """

    element: str
    outer: tuple[int, ...]
    columns: int
    channels: int
    chunks: Chunks
    taps: tuple[int, ...]
    """Bytes from the row of an output to that of each tap."""
    x: Access
    y: Access
    operands: tuple[Access, ...]
    epilogue: Expression
    weights: tuple[int, ...]
    rows: int
    height: int
    width: int
    shared: str = "rows"
    fixed: int | None = None
    """Cache lines of later weights that are asked for at each step; 0 where that is one of `numbers`."""

    @property
    def code(self) -> Self:
        sizes = tuple(0 if k in (0, self._own) else size for k, size in enumerate(self.outer))
        columns = self.columns if len(sizes) > self._own else 0
        return replace(self, outer=sizes, columns=columns, fixed=self._fixed)

    @property
    def numbers(self) -> tuple[int, ...]:
        return self._units, self._blocks, self._strips - 1, self.columns - self.rows, self.group, self._lines

    @property
    def count(self) -> int:
        return self._units if self.shared == "rows" else self._panels

    @property
    def _steps(self) -> int:
        """Rows of x for one row of sums."""
        return self.chunks.count * len(self.taps)

    @property
    def _lanes(self) -> int:
        """Channels of a panel."""
        return self.width * tiles.ROWS

    @property
    def _panels(self) -> int:
        return -(-self.channels // self._lanes)

    @property
    def _panel(self) -> int:
        """The bytes of a panel."""
        return self._steps * self._nbytes

    @property
    def matrices(self) -> int:
        """The bytes of all weights."""
        return prod(self.outer[: self._own]) * self._panels * self._panel

    @property
    def _nbytes(self) -> int:
        """The bytes of weights of a step."""
        return self.width * tiles.NBYTES

    @property
    def _line(self) -> int:
        """Strips of one line of columns."""
        return -(-self.columns // self.rows)

    @property
    def _own(self) -> int:
        """Outer axes with weights of their own."""
        return sum(stride != 0 for stride in self.weights)

    @property
    def _strips(self) -> int:
        """Strips that share their weights."""
        return prod(self.outer[self._own :]) * self._line

    @property
    def _blocks(self) -> int:
        """Blocks of sums, along columns, that share their weights."""
        return -(-self._strips // self.height)

    @property
    def _units(self) -> int:
        return prod(self.outer[: self._own]) * self._blocks

    @property
    def _is_near(self) -> bool:
        """True where all weights stay near while data go by."""
        return self._panel * self._panels <= NEAR

    @property
    def group(self) -> int:
        """Blocks that meet one panel after the other: as many as have their data cached, or all of them.

        All where to read the data again for each panel is less than to read the weights again for each group.
        """
        if self._is_near:
            return 1
        most = max(1, bisect_right(range(1, self._blocks + 1), CACHED, key=self.reads))
        weights = (-(-self._blocks // most) - 1) * self._panels * self._panel
        data = (self._panels - 1) * self.reads(self._blocks)
        return self._blocks if self._panel <= LARGEST and data < weights else most

    def reads(self, blocks: int) -> int:
        """The bytes of data that the first blocks read, or somewhat more: where windows overlap they count once."""
        strips = blocks * self.height
        columns, lines = min(self.columns, strips * self.rows), -(-strips // self._line)
        span = max(self.taps) - min(self.taps) + (columns - 1) * self.x.column + tiles.BYTES
        apart = 1  # parts that lie further apart than what each reads, as samples
        for size, stride in reversed([*zip(self.outer, self.x.outer, strict=True)][self._own :]):
            if stride > span + self.chunks.last:
                apart *= min(lines, size)
            else:
                span += (min(lines, size) - 1) * stride
            lines = -(-lines // size)
        chunk = min(span, -(-strips // apart) * self.rows * len(self.taps) * tiles.BYTES)
        return apart * min(chunk * self.chunks.count, span + self.chunks.last)

    @property
    def asks(self) -> int:
        return 0 if self._is_near else self._early * self._nbytes

    @property
    def _early(self) -> int:
        """How many steps early weights are asked for.

        A panel that several blocks meet is asked for while they meet the one before.
        """
        return min(self._steps, FAR // self._nbytes) if self._alone else self._steps

    @property
    def streamed(self) -> Streamed:
        return Streamed(1, self.matrices, self._panels if self.shared == "panels" else 1)

    @property
    def _lines(self) -> int:
        """Cache lines of later weights that are asked for at each step."""
        return 0 if self._is_near else -(-self._nbytes // LINE // self.group)

    @property
    def _fixed(self) -> int:
        """So many lines where blocks meet a panel alone, or enough others do: a loop takes a twentieth of the time."""
        if self.fixed is not None:
            return self.fixed
        return self._lines if self._lines in (1, 2, self._nbytes // LINE) else 0

    @property
    def _alone(self) -> bool:
        """True where no block meets a panel right after another one."""
        return self._is_near or self._fixed == self._nbytes // LINE

    def write(self, function: Function) -> None:
        f = function
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(3 + len(self.operands))]
        sizes = Sizes(*(f.load_int(f["arguments"], 8 * (len(pointers) + k)) for k in range(6)))
        by_panels = self.shared == "panels"
        begin, end = (0, sizes.units) if by_panels else (f["begin"], f["end"])
        first, last = (f["begin"], f["end"]) if by_panels else (0, self._panels)

        def group(start: Value, _: list[Value]) -> None:
            stop = f.minimum(f.add(start, sizes.group), end)
            is_final = f.compare("sge", stop, end)

            def panel(p: Value, _: list[Value]) -> None:
                final = f.both(is_final, f.compare("eq", f.add(p, 1), last))

                def block(unit: Value, _: list[Value]) -> None:
                    weights, strips, sources, results = self._places(f, pointers, sizes, unit, p)
                    ahead = self._ahead(f, weights, p, f.subtract(unit, start), final, sizes.lines)
                    weights = f.at(weights, f.multiply(p, self._panel))
                    self._sum(f, [*sources, weights, ahead, sizes.lines], p, strips, results)

                f.loop(start, stop, 1, block)

            f.loop(first, last, 1, panel)

        self._prepare(f)
        f.loop(begin, end, sizes.group, group)
        self._complete(f)

    def _places(
        self, f: Function, pointers: list[Value], sizes: Sizes, unit: Value, panel: Value
    ) -> tuple[Value, Int, list[Value], list[Value]]:
        """Where the weights of a block begin, how many strips it has, where x begins for each, and y and the operands.

        Strips that the last block has too few of are the last one once more.
        """
        rest, block = f.divmod(unit, sizes.blocks) if self._own else (0, unit)
        strips = f.minimum(f.subtract(f.add(sizes.last_strip, 1), f.multiply(block, self.height)), self.height)
        own = indices(f, rest, self.outer[: self._own])
        channel = f.multiply(panel, self._lanes)
        weights = pointers[1]
        for index, stride in zip(own, self.weights, strict=False):
            weights = f.at(weights, f.multiply(index, stride))
        sources: list[Value] = []
        results: list[Value] = []
        for k in range(self.height):
            strip = f.minimum(f.add(f.multiply(block, self.height), k), sizes.last_strip)
            line, q = f.divmod(strip, self._line) if self.columns else (0, strip)
            shared = indices(f, line, self.outer[self._own :])
            column = f.minimum(f.multiply(q, self.rows), sizes.last_column)
            places = [
                _place(f, pointer, access, [*own, *shared], column, channel)
                for pointer, access in zip((pointers[0], *pointers[2:]), (self.x, self.y, *self.operands), strict=True)
            ]
            sources.append(places[0])
            results += places[1:]
        return weights, strips, sources, results

    def _ahead(self, f: Function, weights: Value, panel: Value, at: Int, final: Value, lines: Int) -> Value:
        """The part of the next panel to be asked for: the blocks of a group ask for all of it.

        After the last one comes the first, or what the next kernel reads where this one ends (`final`). Asking for
        memory that does not exist costs as much as a walk through pages.
        """
        part = f.multiply(lines, self._steps * LINE)
        following = f.remainder(f.add(panel, 1), self._panels)
        start = f.select(final, f["ahead"], f.at(weights, f.multiply(following, self._panel)))
        return f.at(start, f.minimum(f.multiply(at, part), f.subtract(self._panel, part)))

    def _ask(self, f: Function, step: Value) -> None:
        """Ask for what this step has to ask for, in a function with the parameters `w`, `ahead` and `lines`.

        The first steps may ask for the same panel, the others ask for the next one.
        """
        if self._is_near:
            return
        late, lines = self._steps - self._early, self._fixed or f["lines"]
        ahead = f.at(f["ahead"], f.multiply(f.multiply(f.subtract(step, late), lines), LINE))
        if late:
            same = f.at(f["w"], f.multiply(f.add(step, self._early), self._nbytes))
            ahead = f.select(f.compare("slt", step, late), same, ahead)
        if isinstance(lines, Value):
            f.loop(0, lines, 1, lambda line, _: f.prefetch(ahead, f.multiply(line, LINE)))
        elif self._alone and f.target.tiles:
            f.prefetch_slowly(ahead, lines)
        else:
            for line in range(lines):
                f.prefetch(ahead, line * LINE)

    def _offset(self, f: Function, step: Value) -> Int:
        """The bytes from the row of an output to what it multiplies in this step."""
        if len(self.taps) == 1:
            place = f.multiply(step, self.chunks.stride)
            return f.add(f.minimum(place, self.chunks.last) if self.chunks.overlap else place, self.taps[0])
        offsets = [self.chunks.offset(chunk) + tap for chunk in range(self.chunks.count) for tap in self.taps]
        return f.load_int(f.module.table("offsets", offsets), f.multiply(step, 8))

    def _prepare(self, f: Function) -> None:
        """Write what a thread does before its first block."""

    def _complete(self, f: Function) -> None:
        """Write what it does after the last one."""

    @property
    def _parameters(self) -> list[str]:
        """Those of a function that sums a block: its data, its weights, and those that it asks for."""
        return [*(f"ptr x{k}" for k in range(self.height)), "ptr w", "ptr ahead", "i64 lines"]

    @abstractmethod
    def _sum(self, f: Function, arguments: list[Value], panel: Value, strips: Int, results: list[Value]) -> None:
        """Write the sums of one block.

        `arguments`: for `_parameters`; `strips`: how many count; `results`: where y and the operands of each begin.
        """


def even_rows(columns: int, most: int) -> int:
    """The rows of strips that cut a line of columns evenly."""
    return -(-columns // -(-columns // most))


def exact_rows(columns: int, most: int) -> int:
    """The same for strips that do not overlap."""
    return next(rows for rows in range(most, 0, -1) if columns % rows == 0)


def _place(f: Function, pointer: Value, access: Access, outer: list[Int], column: Int, channel: Int) -> Value:
    """Where a strip begins."""
    offset: Int = access.start
    for index, stride in zip(outer, access.outer, strict=True):
        offset = f.add(offset, f.multiply(index, stride))
    offset = f.add(offset, f.multiply(column, access.column))
    return f.at(pointer, f.add(offset, f.multiply(channel, access.channel)))

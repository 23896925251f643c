"""Products of data in bf16 with packed weights by tiles: matmuls and convolutions, summed and finished in f32."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.expressions import expression_cycles
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.product import Access
from irload.plan.backends.llvm.kernels.tile_results import Results
from irload.plan.backends.llvm.tiles import Tiles
from irload.plan.ir.expression import Expression

CACHED = 768 * 1024
"""Bytes of data that stay in the second level of the cache while weights go by."""
NEAR = 32 * 1024
"""Bytes of weights that stay in the first level while data go by."""
_DATA, _WEIGHTS = 4, 6
"""The first tiles that hold data, and weights; those before hold sums."""


@dataclass(frozen=True, slots=True)
class TileProduct(Kernel):
    """y[outer…, column, channel] = epilogue(Σ x · w, operands). Pointers: x, w, y, then the operands.

    x is in bf16: rows of 32 channels, one for each column, tap and chunk of channels. A tile takes columns that follow
    each other; the last one of a line overlaps the one before. w is in panels [chunk, tap, tile, 16 pairs of channels
    of x, 16 channels of y, 2], `weights` bytes apart along the outer axes, of which those with weights of their own are
    first. `element`: the type of x and w. `height` and `width`: the tiles of a block of sums, along columns and along
    channels. `shared`: what threads take parts of, the `rows` of blocks or the `panels`.

    Results of a block are made of its sums between the products of the next one, so that neither waits for the other.
    """

    element: str
    outer: tuple[int, ...]
    columns: int
    channels: int
    chunks: int
    chunk: int
    """Bytes between chunks of x."""
    taps: tuple[int, ...]
    """Bytes from the row of an output to that of each tap."""
    x: Access
    y: Access
    operands: tuple[Access, ...]
    epilogue: Expression
    weights: tuple[int, ...]
    height: int
    width: int
    shared: str = "rows"

    @property
    def why(self) -> str:
        return f"compiled, {self.element} by AMX"

    @property
    def count(self) -> int:
        return self._units if self.shared == "rows" else self._panels

    @property
    def cycles(self) -> float:
        blocks = self._units * self._panels * self.height * self.width
        finish = self._rows * (2 + expression_cycles(self.epilogue))
        return blocks * max(self._steps * max(self._rows + 1, 9), finish)

    @property
    def scratch(self) -> int:
        return self._results.nbytes + tiles.STATE

    @property
    def _results(self) -> Results:
        """What finishes the sums."""
        return Results(self._rows, self.height, self.width, self.channels, self.y, self.operands, self.epilogue)

    @property
    def _steps(self) -> int:
        """Products of tiles for one tile of sums."""
        return self.chunks * len(self.taps)

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
        return self._steps * self.width * tiles.NBYTES

    @property
    def _line(self) -> int:
        """Tiles of one line of columns."""
        return -(-self.columns // tiles.ROWS)

    @property
    def _rows(self) -> int:
        """Rows of a tile."""
        return -(-self.columns // self._line)

    @property
    def _own(self) -> int:
        """Outer axes with weights of their own."""
        return sum(stride != 0 for stride in self.weights)

    @property
    def _tiles(self) -> int:
        """Tiles along columns that share their weights."""
        return prod(self.outer[self._own :]) * self._line

    @property
    def _blocks(self) -> int:
        """Blocks of sums, along columns, that share their weights."""
        return -(-self._tiles // self.height)

    @property
    def _units(self) -> int:
        return prod(self.outer[: self._own]) * self._blocks

    @property
    def _is_near(self) -> bool:
        """True where all weights stay near while data go by."""
        return self._panel * self._panels <= NEAR

    @property
    def _group(self) -> int:
        """Blocks that meet one panel after the other."""
        if self._is_near:
            return 1
        return max(1, min(self._blocks, CACHED // (self.height * self._rows * self._steps * tiles.BYTES)))

    def write(self, function: Function) -> None:
        f = function
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(3 + len(self.operands))]
        results, registers = self._results, self._registers(f)
        results.begin(f, f["scratch"])
        registers.configure([self._rows] * _WEIGHTS + [tiles.ROWS] * 2)
        by_panels = self.shared == "panels"
        begin, end = (0, self._units) if by_panels else (f["begin"], f["end"])
        first, last = (f["begin"], f["end"]) if by_panels else (0, self._panels)

        def group(start: Value, _: list[Value]) -> None:
            stop = f.minimum(f.add(start, self._group), end)

            def panel(p: Value, _: list[Value]) -> None:
                f.loop(start, stop, 1, lambda unit, _: self._block(f, pointers, unit, p, f.subtract(unit, start)))

            f.loop(first, last, 1, panel)

        f.loop(begin, end, self._group, group)
        results.finish(f, f["scratch"], 0, results.waiting(f, f["scratch"]))
        registers.release()

    def _registers(self, f: Function) -> Tiles:
        """The tiles; where they are emulated, they lie behind the sums."""
        return Tiles(f, f.at(f["scratch"], self._results.nbytes))

    def _block(self, f: Function, pointers: list[Value], unit: Value, panel: Value, at: Int) -> None:
        """One block of sums, the `at`-th of its group, and what is made of them."""
        matrix, block = f.divmod(unit, self._blocks)
        own: list[Int] = []
        for size in reversed(self.outer[: self._own]):
            matrix, index = f.divmod(matrix, size)
            own.insert(0, index)
        w: Int = f.multiply(panel, self._panel)
        for index, stride in zip(own, self.weights, strict=False):
            w = f.add(w, f.multiply(index, stride))
        channel = f.multiply(panel, self._lanes)
        sources: list[Value] = []
        results: list[Value] = []
        for k in range(self.height):
            tile = f.minimum(f.add(f.multiply(block, self.height), k), self._tiles - 1)
            line, q = f.divmod(tile, self._line)
            shared: list[Int] = []
            for size in reversed(self.outer[self._own :]):
                line, index = f.divmod(line, size)
                shared.insert(0, index)
            column = f.minimum(f.multiply(q, self._rows), self.columns - self._rows)
            places = [
                _place(f, pointer, access, [*own, *shared], column, channel)
                for pointer, access in zip((pointers[0], *pointers[2:]), (self.x, self.y, *self.operands), strict=True)
            ]
            sources.append(places[0])
            results += places[1:]
        weights = f.at(pointers[1], w)
        f.call(self._sum_function(f), [*sources, weights, self._ahead(f, weights, at), f["scratch"]])
        self._results.place(f, f["scratch"], panel, results)

    def _ahead(self, f: Function, weights: Value, at: Int) -> Value:
        """The part of the next panel to be asked for: the blocks of a group ask for all of it."""
        part = self._lines * self._steps * tiles.BYTES
        return f.at(weights, f.add(self._panel, f.minimum(f.multiply(at, part), self._panel - part)))

    @property
    def _lines(self) -> int:
        """Cache lines of the next panel that are asked for at each step."""
        return 0 if self._is_near else -(-self.width * tiles.ROWS // self._group)

    def _sum_function(self, f: Function) -> str:
        """The function that sums one block."""
        name = "sum"
        if not f.module.has(name):
            data = [f"x{k}" for k in range(self.height)]
            own = f.module.function(name, [f"ptr {n}" for n in (*data, "w", "ahead", "scratch")])
            self._write_sum(own, self._registers(own))
        return name

    def _write_sum(self, f: Function, registers: Tiles) -> None:
        memory, results = f["scratch"], self._results
        waiting = results.waiting(f, memory)
        rows = self.height * self._rows
        part = -(-rows // self._steps)
        for sums in range(self.height * self.width):
            registers.zero(sums)

        def step(k: Value, _: list[Value]) -> None:
            offset = self._offset(f, k)
            w = f.at(f["w"], f.multiply(k, self.width * tiles.NBYTES))
            for a in range(self.height):
                data = _DATA + a % 2
                registers.load(data, f.at(f[f"x{a}"], offset), self.x.column)
                for b in range(self.width):
                    if a == 0:
                        registers.load(_WEIGHTS + b, f.at(w, b * tiles.NBYTES), tiles.BYTES)
                    registers.dot(a * self.width + b, data, _WEIGHTS + b)
            ahead = f.at(f["ahead"], f.multiply(k, self._lines * tiles.BYTES))
            for line in range(self._lines):
                f.prefetch(ahead, line * tiles.BYTES)
            first = f.multiply(k, part)
            stop = f.minimum(f.add(first, part), waiting)
            f.when(f.compare("slt", first, stop), lambda: results.finish(f, memory, first, stop))

        f.loop(0, self._steps, 1, step)
        free = results.free(f, memory)
        for a in range(self.height):
            for b in range(self.width):
                place = f.at(free, (a * self._rows * self.width + b) * tiles.BYTES)
                registers.store(a * self.width + b, place, self.width * tiles.BYTES)
        results.stored(f, memory)

    def _offset(self, f: Function, step: Value) -> Int:
        """The bytes from the row of an output to what it multiplies in this step."""
        if len(self.taps) == 1:
            return f.add(f.multiply(step, self.chunk), self.taps[0])
        offsets = [chunk * self.chunk + tap for chunk in range(self.chunks) for tap in self.taps]
        return f.load_int(f.module.table("offsets", offsets), f.multiply(step, 8))


def _place(f: Function, pointer: Value, access: Access, outer: list[Int], column: Int, channel: Int) -> Value:
    """Where a tile begins."""
    offset: Int = access.start
    for index, stride in zip(outer, access.outer, strict=True):
        offset = f.add(offset, f.multiply(index, stride))
    offset = f.add(offset, f.multiply(column, access.column))
    return f.at(pointer, f.add(offset, f.multiply(channel, access.channel)))

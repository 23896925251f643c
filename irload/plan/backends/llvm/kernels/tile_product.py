"""Products of blocks by the tiles of AMX."""

from __future__ import annotations

from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.expressions import expression_cycles
from irload.plan.backends.llvm.kernels.block_product import BlockProduct
from irload.plan.backends.llvm.kernels.tile_results import Results
from irload.plan.backends.llvm.tiles import Tiles
from irload.record import record

_DATA, _WEIGHTS = 4, 6
"""The first tiles that hold data, and weights; those before hold sums."""


@record()
class TileProduct(BlockProduct):
    """A strip of sums with 16 channels is a tile.

    Results of a block are made of its sums between the products of the next one, so that neither waits for the other.
    """

    @property
    def why(self) -> str:
        return f"compiled, {self.element} by AMX"

    @property
    def cycles(self) -> float:
        blocks = self._units * self._panels * self.height * self.width
        finish = self.rows * (2 + expression_cycles(self.epilogue))
        return blocks * max(self._steps * max(self.rows + 1, 9), finish)

    @property
    def scratch(self) -> int:
        return self._results.nbytes + tiles.STATE

    @property
    def _results(self) -> Results:
        """What finishes the sums."""
        return Results(self.rows, self.height, self.width, self.channels, self.y, self.operands, self.epilogue)

    def _prepare(self, f: Function) -> None:
        self._results.begin(f, f["scratch"])
        width = self.chunks.nbytes
        shapes = [(self.rows, tiles.BYTES)] * _DATA + [(self.rows, width)] * 2 + [(width // 4, tiles.BYTES)] * 2
        self._registers(f).configure(shapes)

    def _complete(self, f: Function) -> None:
        results = self._results
        results.finish(f, f["scratch"], 0, results.waiting(f, f["scratch"]))
        self._registers(f).release()

    def _registers(self, f: Function) -> Tiles:
        """The tiles; where they are emulated, they lie behind the sums."""
        return Tiles(f, f.at(f["scratch"], self._results.nbytes))

    def _sum(self, f: Function, arguments: list[Value], panel: Value, strips: Int, results: list[Value]) -> None:
        f.call(self._sum_function(f), [*arguments, f["scratch"]])
        self._results.place(f, f["scratch"], panel, strips, results)

    def _sum_function(self, f: Function) -> str:
        """The function that sums one block."""
        name = "sum"
        if not f.module.has(name):
            own = f.module.function(name, [*self._parameters, "ptr scratch"])
            self._write_sum(own, self._registers(own))
        return name

    def _write_sum(self, f: Function, registers: Tiles) -> None:
        memory, results = f["scratch"], self._results
        waiting = results.waiting(f, memory)
        rows = self.height * self.rows
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
                        registers.load(_WEIGHTS + b, f.at(w, b * tiles.NBYTES), tiles.BYTES, once=self._alone)
                    registers.dot(a * self.width + b, data, _WEIGHTS + b)
            self._ask(f, k)
            first = f.multiply(k, part)
            stop = f.minimum(f.add(first, part), waiting)
            f.when(f.compare("slt", first, stop), lambda: results.finish(f, memory, first, stop))

        f.loop(0, self._steps, 1, step)
        free = results.free(f, memory)
        for a in range(self.height):
            for b in range(self.width):
                place = f.at(free, (a * self.rows * self.width + b) * tiles.BYTES)
                registers.store(a * self.width + b, place, self.width * tiles.BYTES)
        results.stored(f, memory)

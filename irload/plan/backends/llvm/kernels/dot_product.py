"""Products of blocks by AVX512_BF16: sums in registers, their epilogue, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as combinations

from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.dots import dot
from irload.plan.backends.llvm.expressions import expression_cycles
from irload.plan.backends.llvm.kernels.block_product import BlockProduct, even_rows
from irload.plan.backends.llvm.kernels.results import TileResults
from irload.record import record

SUMS = 28
"""The registers that hold sums; the others hold weights and a row's element."""
STRIPS = 4
"""The most strips of a block: each takes a register for its address."""
LATENCY = 6
"""Sums that must be under way so that none waits for another."""
PAIRS = tiles.ROWS
"""Pairs of channels of a chunk."""
MOST_CHAINS = 4
"""Chains into which sums are split where a block has few; a turn of the innermost loop takes a pair for each.

Of more pairs LLVM orders the instructions such that the sums no longer fit into registers.
"""


@record()
class DotProduct(BlockProduct):
    """A row of sums with 16 channels is a vector."""

    @property
    def why(self) -> str:
        return f"compiled, {self.element} by AVX512_BF16"

    @property
    def cycles(self) -> float:
        sums = self.height * self.rows * self.width
        pairs = -(-self.chunks.depth // 2) * len(self.taps)
        each = pairs * max(sums, LATENCY) + sums * (2 + expression_cycles(self.epilogue)) + 30
        return self._units * self._panels * each

    def _sum(self, f: Function, arguments: list[Value], panel: Value, strips: Int, results: list[Value]) -> None:
        rest = self.channels - (self._panels - 1) * self._lanes

        def call(channels: int) -> Callable[[], None]:
            return lambda: f.call(self._sum_function(f, channels), [*arguments, *results])

        if rest == self._lanes or self._panels == 1:
            call(rest)()
        else:
            f.when(f.compare("eq", panel, self._panels - 1), call(rest), call(self._lanes))

    def _sum_function(self, f: Function, channels: int) -> str:
        """The function for blocks of so many channels."""
        name = f"sum{channels}"
        if not f.module.has(name):
            strips = range(self.height)
            results = [f"{kind}{k}" for k in strips for kind in ("y", *self._operand_names)]
            own = f.module.function(name, [*self._parameters, *(f"ptr {n}" for n in results)])
            strip_results = [self._results(own, k, channels) for k in strips]
            for results in strip_results:
                results.ask(own)
            sums = self._sums(own, -(-channels // own.lanes))
            each = len(sums) // self.height
            for k, results in enumerate(strip_results):
                results.write(own, sums[k * each : (k + 1) * each])
        return name

    @property
    def _operand_names(self) -> list[str]:
        return [f"operand{k}_" for k in range(len(self.operands))]

    def _results(self, f: Function, strip: int, channels: int) -> TileResults:
        """What finishes the sums of a strip."""
        operands = [(f[f"{n}{strip}"], access) for n, access in zip(self._operand_names, self.operands, strict=True)]
        return TileResults(self.epilogue, self.rows, channels, (f[f"y{strip}"], self.y), operands)

    def _sums(self, f: Function, vectors: int) -> list[Value]:
        """The sums of a block: strip by strip, row by row, vector by vector."""
        count = self.height * self.rows * vectors
        chains = min(MOST_CHAINS, -(-LATENCY // count))
        totals = [f.zero()] * (chains * count)
        rest = self.chunks.depth - (self.chunks.count - 1) * tiles.DEPTH
        whole = (self.chunks.count - 1) * len(self.taps)
        for first, stop, pairs in ((0, whole, PAIRS), (whole, self._steps, -(-rest // 2))):
            if first < stop:
                totals = f.loop(first, stop, 1, self._step(f, vectors, pairs, chains), totals)
        found = totals[:count]
        for k in range(count, len(totals)):
            found[k % count] = f.arithmetic("fadd", found[k % count], totals[k])
        return found

    def _step(self, f: Function, vectors: int, pairs: int, chains: int) -> Callable[[Value, list[Value]], list[Value]]:
        """The turns for steps of so many pairs, of which each turn of the innermost loop takes one for each chain."""

        def step(k: Value, totals: list[Value]) -> list[Value]:
            offset = self._offset(f, k)
            data = [f.at(f[f"x{a}"], offset) for a in range(self.height)]
            w = f.at(f["w"], f.multiply(k, self.width * tiles.NBYTES))
            self._ask(f, k)

            def turn(pair: Value, totals: list[Value]) -> list[Value]:
                xs = [f.at(x, f.multiply(pair, 4)) for x in data]
                return self._pairs(f, xs, f.at(w, f.multiply(pair, tiles.BYTES)), range(chains), vectors, totals)

            whole = pairs // chains * chains
            if whole:
                totals = f.loop(0, whole, chains, turn, totals)
            return self._pairs(f, data, w, range(whole, pairs), vectors, totals)

        return step

    def _pairs(
        self, f: Function, data: Sequence[Value], w: Value, pairs: range, vectors: int, totals: list[Value]
    ) -> list[Value]:
        count = self.height * self.rows * vectors
        totals = list(totals)
        for pair in pairs:
            weights = [f.load(w, b * tiles.NBYTES + pair * tiles.BYTES, align=tiles.BYTES) for b in range(vectors)]
            chain = pair * count % len(totals)
            for k, (x, r) in enumerate(combinations(data, range(self.rows))):
                element = f.broadcast(x, r * self.x.column + 4 * pair)
                for b in range(vectors):
                    at = chain + k * vectors + b
                    totals[at] = dot(f, totals[at], element, weights[b])
        return totals


def dot_shape(columns: int, lines: int, width: int) -> tuple[int, int]:
    """Rows and height of the blocks that take the fewest cycles for so many lines of columns."""
    most = SUMS // width
    shapes = [
        (rows, height)
        for rows in sorted({even_rows(columns, n) for n in range(1, most + 1)})
        for height in range(1, min(STRIPS, most // rows) + 1)
    ]

    def cost(shape: tuple[int, int]) -> tuple[float, int]:
        rows, height = shape
        blocks = -(-lines * -(-columns // rows) // height)
        return blocks * (max(rows * height * width, LATENCY) + width + 1), height

    return min(shapes, key=cost)

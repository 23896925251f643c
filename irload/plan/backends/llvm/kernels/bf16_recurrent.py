"""Recurrent networks whose products with the state are in bf16, by AVX512_BF16 or by the tiles of AMX.

The state is kept in f32; what products read of it is rounded where it is made.
"""

from __future__ import annotations

from typing import ClassVar

from irload.core.tensor import Array
from irload.plan.backends.llvm import bfloat16, tiles
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.elements import BF16
from irload.plan.backends.llvm.kernels.loops import each_vector
from irload.plan.backends.llvm.kernels.recurrent import PLACES, PackedPhase, Recurrence, WritePanel
from irload.plan.backends.llvm.kernels.recurrent_cells import Phase
from irload.plan.backends.llvm.operands import read_rounded
from irload.plan.backends.llvm.pack import pair_panels, tile_panels
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import Tiles
from irload.record import record

MOST_TILES = 6
"""Tiles of sums of a panel; one more holds the state, and one the weights."""
LATENCY, LOAD = 52, 16
"""Cycles until the next product can add to a tile of sums, and those that a tile of weights takes to load."""
_STATE, _WEIGHTS = MOST_TILES, MOST_TILES + 1


@record()
class RoundedRecurrence(Recurrence):
    """What both have in common. Elements of the state that do not exist are 0 where products read them."""

    element: ClassVar[str] = BF16

    @property
    def _kept_bytes(self) -> int:
        """Of the states in f32 of a block: its own, and the cell."""
        return 2 * self.block * self.pitch

    @property
    def scratch(self) -> int:
        return self._kept_bytes + 3 * self.block * self._row

    def _buffers(self, f: Function) -> list[Value]:
        own, cell = (f.at(f["scratch"], k * self.block * self.pitch) for k in range(2))
        return [own, cell, *(f.at(f["scratch"], self._kept_bytes + k * self.block * self._row) for k in range(3))]

    def _kept(self, own: Value, multiplied: Value) -> Value:
        return own

    def _begin(self, f: Function, samples: Int, own: Value, multiplied: Value) -> None:
        def sample(index: Value, _: list[Value]) -> None:
            source, target = f.at(own, f.multiply(index, self.pitch)), f.at(multiplied, f.multiply(index, self._row))

            def vector(at: Int, count: int | None) -> None:
                bits = read_rounded(f, source, f.multiply(at, 4), 4, count or f.lanes)
                bfloat16.store(f, bits, target, f.multiply(at, bfloat16.BYTES))

            each_vector(f, self.hidden, vector)

        self._clear(f)
        f.loop(0, samples, 1, sample)

    def _clear(self, f: Function) -> None:
        """Make zeros of what products read where they read more than whole vectors of the state."""

    def _store(self, f: Function, k: int, row: int, v: int, state: Value, count: int) -> None:
        if k == len(self.phases) - 1:
            f.store(state, f["own"], row * self.pitch + v * f.target.bytes)
        exists = state if count == f.lanes else f.select(f.mask(count), state, f.zero())
        bfloat16.store(f, bfloat16.rounded(f, exists), f["target"], row * self._row + v * f.lanes * bfloat16.BYTES)


@record()
class DotRecurrence(RoundedRecurrence):
    """Tiles of sums in vector registers. Weights are pairs: a word is those of two elements of the state."""

    @staticmethod
    def pack(weights: Array, lanes: int, panel: int) -> Array:
        return pair_panels(weights, lanes, panel)

    @property
    def why(self) -> str:
        return f"compiled, {self.element} by AVX512_BF16"


@record()
class TileRecurrence(RoundedRecurrence):
    """All samples of a block are rows of the same tiles, of which a panel has one for each gate of each vector.

    Weights are [directions, panels, chunk, tile, 16 pairs, 16, 2]; a chunk is 32 elements of the state.
    """

    @staticmethod
    def packed(target: Target, phase: Phase, samples: int, hidden: int) -> PackedPhase:
        """As many vectors of the state as take the fewest cycles."""
        gates, whole = len(phase.gates), -(-hidden // target.lanes)

        def cost(vectors: int) -> int:
            return -(-whole // vectors) * max(vectors * gates * LOAD, LATENCY)

        return PackedPhase(phase, samples, min(range(1, min(MOST_TILES // gates, whole) + 1), key=cost))

    @staticmethod
    def pack(weights: Array, lanes: int, panel: int) -> Array:
        return tile_panels(weights[:, :, None], panel)

    @property
    def why(self) -> str:
        return f"compiled, {self.element} by AMX"

    @property
    def cycles(self) -> float:
        panels = sum(p.panels(self.hidden, self.lanes) * p.panel for p in self.phases)
        products = self._blocks * panels * self._chunks * max(self.block + 1, 9)
        return len(self.backwards) * self.length * (products + self.batch * self._gate_cycles)

    @property
    def scratch(self) -> int:
        return self._sums + self.block * MOST_TILES * tiles.BYTES + tiles.STATE

    @property
    def _sums(self) -> int:
        """Where the sums of a panel lie."""
        return self._kept_bytes + 3 * self.block * self._row

    @property
    def _chunks(self) -> int:
        return -(-self.hidden // tiles.DEPTH)

    @property
    def _words(self) -> int:
        return self._chunks * tiles.ROWS

    @property
    def _row(self) -> int:
        return self._chunks * tiles.BYTES

    def _prepare(self, f: Function) -> None:
        shapes = [(self.block, tiles.BYTES)] * _WEIGHTS + [(tiles.ROWS, tiles.BYTES)]
        self._registers(f).configure(shapes)

    def _complete(self, f: Function) -> None:
        self._registers(f).release()

    def _registers(self, f: Function) -> Tiles:
        return Tiles(f, f.at(f["scratch"], self.scratch - tiles.STATE))

    def _clear(self, f: Function) -> None:
        start = f.at(f["scratch"], self._kept_bytes)
        f.loop(0, 3 * self.block * self._row, tiles.BYTES, lambda at, _: f.store(f.zero(), start, at))

    def _panel(self, f: Function, k: int, samples: Int) -> WritePanel:
        sums = f.at(f["scratch"], self._sums)

        def panel(source: Value, w: Value, places: list[Value], last: bool) -> None:
            f.call(self._sum_function(f, k), [source, w, f["scratch"]])

            def row(sample: Value, _: list[Value]) -> None:
                own = [f.at(p, f.multiply(sample, n)) for p, n in zip(places, self._by_sample, strict=True)]
                found = f.at(sums, f.multiply(sample, self.phases[k].panel * tiles.BYTES))
                f.call(self._state_function(f, k, last=last), [found, *own])

            f.loop(0, samples, 1, row)

        return panel

    def _sum_function(self, caller: Function, k: int) -> str:
        """The function that sums a panel of a phase for all samples."""
        name = f"sum{k}"
        if not caller.module.has(name):
            f = caller.module.function(name, ["ptr h", "ptr w", "ptr scratch"])
            registers, count = self._registers(f), self.phases[k].panel
            for tile in range(count):
                registers.zero(tile)

            def chunk(at: Value, _: list[Value]) -> None:
                registers.load(_STATE, f.at(f["h"], f.multiply(at, tiles.BYTES)), self._row)
                for tile in range(count):
                    w = f.at(f["w"], f.add(f.multiply(at, count * tiles.NBYTES), tile * tiles.NBYTES))
                    # weights that leave the first level alone: a state of 256 takes 0.53 ms, else 0.56
                    registers.load(_WEIGHTS, w, tiles.BYTES, once=True)
                    registers.dot(tile, _STATE, _WEIGHTS)

            f.loop(0, self._chunks, 1, chunk)
            for tile in range(count):
                registers.store(tile, f.at(f["scratch"], self._sums + tile * tiles.BYTES), count * tiles.BYTES)
        return name

    def _state_function(self, caller: Function, k: int, *, last: bool) -> str:
        """The function that makes the state of one sample of the sums of a panel."""
        name = f"state{k}_{'last' if last else 'whole'}"
        if not caller.module.has(name):
            f = caller.module.function(name, [f"ptr {p}" for p in ("sums", *PLACES)])
            sums = [f.load(f["sums"], tile * tiles.BYTES) for tile in range(self.phases[k].panel)]
            self._write_row(f, k, 0, sums, last=last)
        return name

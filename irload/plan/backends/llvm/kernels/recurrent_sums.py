"""The cells of recurrent networks, as data, and products with the state: in vector registers, or by tiles of AMX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.dot import Dot
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tile import RegisterTile, SumLevel, write_sums
from irload.plan.backends.llvm.tiles import Tiles
from irload.plan.backends.llvm.tuning import TILE_LATENCY, TILE_LOAD
from irload.plan.ir.expression import Expression, Instruction
from irload.record import record

OPERANDS = ("gates", "target", "cell", "state", "bias", "y")
"""Operands of a panel besides its sums. It reads gates, cell, state and bias; it writes target, state, cell and y."""
Operand = tuple[Pointer, AnyInt]
"""The address of an operand for the first sample, and the sample stride in bytes."""
MOST_TILES = 6
"""The maximum number of tiles of sums of a panel. Of the other two tiles, one has the state, one the weights."""
_STATE, _WEIGHTS = MOST_TILES, MOST_TILES + 1

WriteRow = Callable[[Function, int, list[Vec]], None]
"""Emits the new state of a row of a tile: (function with OPERANDS, row, sums of the row)."""


@record()
class CellPhase:
    """Gates whose products with the state are computed together, and the expression that follows.

    Operands of the expression: the gates; if the last gate is `apart`, its product with the state plus a separate bias;
    then the cell state and the previous state, as far as `reads` lists them. Results: the new state, or the operand of
    the products of the next phase; then the new cell state if the phase `stores` it.
    """

    gates: tuple[int, ...]
    expression: Expression
    reads: tuple[str, ...] = ()
    apart: bool = False
    stores: bool = False


def _expression(operands: int, *lines: tuple[str, int, int] | tuple[str, int], results: tuple[int, ...]) -> Expression:
    instructions = tuple(Instruction(opcode, tuple(arguments)) for opcode, *arguments in lines)
    return Expression(operands, instructions, results)


_LSTM = _expression(
    5,
    ("sigmoid", 0),
    ("sigmoid", 1),
    ("tanh", 2),
    ("sigmoid", 3),
    ("multiply", 5, 4),
    ("multiply", 6, 7),
    ("add", 9, 10),
    ("tanh", 11),
    ("multiply", 8, 12),
    results=(13, 11),
)
_GRU_LINEAR = _expression(
    5,
    ("sigmoid", 0),
    ("sigmoid", 1),
    ("multiply", 6, 3),
    ("add", 2, 7),
    ("tanh", 8),
    ("subtract", 4, 9),
    ("multiply", 10, 5),
    ("add", 9, 11),
    results=(12,),
)
_GRU_GATES = _expression(3, ("sigmoid", 0), ("sigmoid", 1), ("multiply", 4, 2), results=(5, 3))
_GRU_STATE = _expression(3, ("tanh", 0), ("subtract", 2, 3), ("multiply", 4, 1), ("add", 3, 5), results=(6,))
_RNN = _expression(1, ("tanh", 0), results=(1,))
_RNN_RELU = _expression(1, ("relu", 0), results=(1,))

PHASES = {
    "lstm": (CellPhase((0, 1, 2, 3), _LSTM, ("cell",), stores=True),),
    "gru_linear": (CellPhase((0, 1, 2), _GRU_LINEAR, ("state",), apart=True),),
    "gru": (CellPhase((0, 1), _GRU_GATES, ("state",), stores=True), CellPhase((2,), _GRU_STATE, ("cell", "state"))),
    "rnn": (CellPhase((0,), _RNN),),
    "rnn_relu": (CellPhase((0,), _RNN_RELU),),
}
"""The phases of each cell. Gates are numbered as in the step: lstm f, i, c, o; gru z, r, h."""


@record()
class PackedPhase:
    """A phase and the shape of its tile of sums: `rows` samples × `vectors` of the state, for all of its gates."""

    phase: CellPhase
    rows: int
    vectors: int

    @property
    def panel(self) -> int:
        """Vectors of a panel of weights."""
        return self.vectors * len(self.phase.gates)

    def panels(self, hidden: int, lanes: int) -> int:
        """Panels for a state of `hidden` elements."""
        return -(-hidden // (self.vectors * lanes))

    def width(self, hidden: int, lanes: int) -> int:
        """The number of f32 of all panels: the gates of one sample and step."""
        return self.panels(hidden, lanes) * self.panel * lanes


@record(eq=False)
class PhasePanel:
    """A panel of a phase at one step, for `samples`: `source` is the copy of the state that it multiplies by `weights`.

    `operands`: the OPERANDS.
    """

    name: str
    packed: PackedPhase
    samples: AnyInt
    source: Pointer
    weights: Pointer
    operands: Sequence[Operand]
    memory: Pointer
    write_row: WriteRow

    def arguments(self, sample: AnyInt) -> dict[str, AnyInt | Pointer]:
        """The OPERANDS from a sample on, and the sample strides of gates and y."""
        moved = [p + sample * stride for p, stride in self.operands]
        rows = {"gates_row": self.operands[0][1], "y_row": self.operands[-1][1]}
        return {**dict(zip(OPERANDS, moved, strict=True)), **rows}


@record()
class StateSums:
    """Sums of a panel in vector registers. A word of weights is one f32, or two bf16 for AVX512_BF16."""

    dot: Dot
    hidden: int
    block: int
    """The maximum number of samples per block."""

    def packed(self, target: Target, phase: CellPhase) -> PackedPhase:
        """The shape of the tile: up to 8 vectors of gates for one sample, else up to 4 for several samples."""
        gates = len(phase.gates)
        vectors = max(1, (8 if self.block == 1 else 4) // gates)
        vectors = min(vectors, -(-self.hidden // target.lanes))
        rows = (target.registers - 1) // (vectors * gates) - 1
        return PackedPhase(phase, max(1, min(rows, self.block)), vectors)

    def cycles(self, batch: int, vectors: int) -> float:
        """Cycles of the products of one step. `vectors`: of gates."""
        return batch * vectors * self.hidden / 2

    @property
    def words(self) -> int:
        """Words of 4 bytes in a column of packed weights."""
        return self.dot.words(self.hidden)

    def row(self, pitch: int) -> int:
        """The sample stride, in bytes, of the copy of the state. `pitch`: the sample stride of the state."""
        return pitch

    @property
    def memory(self) -> int:
        """Scratch memory per thread in addition to states."""
        return 0

    def begin(self, f: Function, memory: Pointer) -> None:
        """Configure the registers of a thread."""

    def end(self, f: Function, memory: Pointer) -> None:
        """Release the registers of a thread."""

    def write(self, f: Function, panel: PhasePanel, row: int) -> None:
        """Emit the sums and the new state of a panel. `row`: the sample stride of the copy of the state."""
        most = panel.packed.rows
        whole = panel.samples // most * most
        for rows, first, last in ((most, 0, whole), (1, whole, panel.samples))[: min(most, 2)]:
            for sample in f.range(first, last, rows):
                arguments = {"h": panel.source + sample * row, "w": panel.weights, **panel.arguments(sample)}
                f.call(f"{panel.name}_{rows}", arguments, partial(self._write_tile, panel=panel, rows=rows, row=row))

    def _write_tile(self, f: Function, panel: PhasePanel, rows: int, row: int) -> None:
        width = panel.packed.panel
        tile = RegisterTile(rows, row, width, width, (SumLevel(self.words, 4),), dot=self.dot)
        sums = write_sums(f, tile, [f["h"]], f["w"], {})
        for r in range(rows):
            panel.write_row(f, r, sums[r * width : (r + 1) * width])


@record()
class TileStateSums(StateSums):
    """All samples of a block are rows of the same tiles of AMX. A panel has a tile per gate and vector of the state.

    Weights are [directions, panels, chunk, tile, 16 pairs, 16, 2]; a chunk is 32 elements of the state.
    """

    def packed(self, target: Target, phase: CellPhase) -> PackedPhase:
        """The shape with the number of vectors of the state that takes the fewest cycles."""
        gates, whole = len(phase.gates), -(-self.hidden // target.lanes)

        def cost(vectors: int) -> int:
            return -(-whole // vectors) * max(vectors * gates * TILE_LOAD, TILE_LATENCY)

        return PackedPhase(phase, self.block, min(range(1, min(MOST_TILES // gates, whole) + 1), key=cost))

    def cycles(self, batch: int, vectors: int) -> float:
        return -(-batch // self.block) * vectors * self.chunks * max(self.block + 1, 9)

    @property
    def chunks(self) -> int:
        """Chunks of the state."""
        return -(-self.hidden // tiles.DEPTH)

    @property
    def words(self) -> int:
        return self.chunks * tiles.ROWS

    def row(self, pitch: int) -> int:
        return self.chunks * tiles.BYTES

    @property
    def memory(self) -> int:
        return self._sums + tiles.STATE

    @property
    def _sums(self) -> int:
        """The bytes of the sums of a panel."""
        return self.block * MOST_TILES * tiles.BYTES

    def begin(self, f: Function, memory: Pointer) -> None:
        shapes = [(self.block, tiles.BYTES)] * _WEIGHTS + [(tiles.ROWS, tiles.BYTES)]
        self._registers(f, memory).configure(shapes)

    def end(self, f: Function, memory: Pointer) -> None:
        self._registers(f, memory).release()

    def _registers(self, f: Function, memory: Pointer) -> Tiles:
        return Tiles(f, memory + self._sums)

    def write(self, f: Function, panel: PhasePanel, row: int) -> None:
        count = panel.packed.panel
        arguments = {"h": panel.source, "w": panel.weights, "sums": panel.memory}
        f.call(f"sum{count}", arguments, lambda inner: self._write_sum(inner, count, row))

        def write_state(inner: Function) -> None:
            panel.write_row(inner, 0, [inner.load(inner["sums"], tile * tiles.BYTES) for tile in range(count)])

        for sample in f.range(0, panel.samples):
            sums = panel.memory + sample * (count * tiles.BYTES)
            f.call(panel.name, {"sums": sums, **panel.arguments(sample)}, write_state)

    def _write_sum(self, f: Function, count: int, row: int) -> None:
        """Write the function for the sums of a panel of all samples, the same for all panels of a phase."""
        registers = self._registers(f, f["sums"])
        registers.zero(count)
        for at in f.range(0, self.chunks):
            registers.load(_STATE, f["h"] + at * tiles.BYTES, row)
            for tile in range(count):
                # weights bypass the L1 cache: a state of 256 takes 0.53 ms instead of 0.56 ms
                weights = f["w"] + (at * (count * tiles.NBYTES) + tile * tiles.NBYTES)
                registers.load(_WEIGHTS, weights, tiles.BYTES, once=True)
                registers.dot(tile, _STATE, _WEIGHTS)
        registers.store_block(1, count, f["sums"], 0, count * tiles.BYTES)

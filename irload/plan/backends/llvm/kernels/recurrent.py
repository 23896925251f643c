"""Recurrent networks: the products of all inputs come first, then step by step those of the state, gates in registers.

The weights of one vector of the state lie side by side for all gates of a phase, so that a tile of the product has all
that its new state depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from irload.core.tensor import Array
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.elements import F32, SIZES
from irload.plan.backends.llvm.expressions import evaluate, expression_cycles
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import each_vector, offset
from irload.plan.backends.llvm.kernels.recurrent_cells import Phase
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.pack import panels
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tile import Level, Row, Tile, write_sums
from irload.record import record

PLACES = ("gates", "target", "cell", "own", "bias", "y")
"""What a panel reads beside its products, and where its results lie."""
WritePanel = Callable[[Value, Value, list[Value], bool], None]
"""Writes a panel from what products read, its weights and its PLACES; true for the last one."""


@record()
class PackedPhase:
    """A phase with the tiles of its product: `rows` samples × `vectors` of the state, for all of its gates."""

    phase: Phase
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
        """Floats of all panels side by side: the gates of one sample and step."""
        return self.panels(hidden, lanes) * self.panel * lanes


@record()
class Recurrence(Kernel):
    """All steps of a block of samples in one direction, which is a unit.

    Pointers: gates [directions, batch, length, width], the weights of each phase [directions, panels, words, panel],
    the bias of products that stand apart (or nothing), y, the first state, the last, and for cells both of the cell.
    Strides count bytes: of y [batch, directions, length, hidden], of states [batch, directions, hidden]. `element`:
    what products with the state multiply; a word of weights is one f32, or several elements beside each other.
    """

    lanes: int
    phases: tuple[PackedPhase, ...]
    backwards: tuple[bool, ...]
    batch: int
    block: int
    length: int
    hidden: int
    y: tuple[int, ...]
    states: tuple[tuple[int, ...], ...]

    element: ClassVar[str] = F32

    @staticmethod
    def packed(target: Target, phase: Phase, samples: int, hidden: int) -> PackedPhase:
        """The tile of a phase: eight sums for one sample, else as many samples as there are registers."""
        gates = len(phase.gates)
        vectors = max(1, (8 if samples == 1 else 4) // gates)
        vectors = min(vectors, -(-hidden // target.lanes))
        rows = (target.registers - 1) // (vectors * gates) - 1
        return PackedPhase(phase, max(1, min(rows, samples)), vectors)

    @staticmethod
    def pack(weights: Array, lanes: int, panel: int) -> Array:
        """Weights [directions, width, hidden] of a phase as products with the state read them."""
        return panels(weights, lanes, panel)

    @property
    def _blocks(self) -> int:
        return -(-self.batch // self.block)

    @property
    def count(self) -> int:
        return len(self.backwards) * self._blocks

    @property
    def cycles(self) -> float:
        products = self._width * self.hidden / (2 * self.lanes)
        return len(self.backwards) * self.batch * self.length * (products + self._gate_cycles)

    @property
    def _gate_cycles(self) -> float:
        """Cycles of what follows the products of one sample and step."""
        vectors = -(-self.hidden // self.lanes)
        return sum(expression_cycles(p.phase.expression) for p in self.phases) * vectors

    @property
    def _width(self) -> int:
        """Floats of the gates of one sample and step, of all phases."""
        return sum(p.width(self.hidden, self.lanes) for p in self.phases)

    @property
    def pitch(self) -> int:
        """Bytes of the state of one sample: whole vectors of all panels."""
        return max(p.panels(self.hidden, self.lanes) * p.vectors for p in self.phases) * self.lanes * 4

    @property
    def scratch(self) -> int:
        return 4 * self.block * self.pitch

    @property
    def _words(self) -> int:
        """The words of 4 bytes that products read of the state of one sample."""
        return -(-self.hidden * self._size // 4)

    @property
    def _size(self) -> int:
        """Bytes of an element of what products read."""
        return SIZES[self.element]

    @property
    def _row(self) -> int:
        """Bytes between the samples of what products read."""
        return self.pitch

    def _buffers(self, f: Function) -> list[Value]:
        """The state, the cell, what products of a second phase read, and those of the first, now and a step later."""
        state, following, cell, between = (f.at(f["scratch"], k * self.block * self.pitch) for k in range(4))
        return [state, cell, between, state, following]

    def write(self, function: Function) -> None:
        f = function
        count = 3 + len(self.phases) + len(self.states)
        gates, *rest = (f.load_pointer(f["arguments"], 8 * k) for k in range(count))
        weights, (inner, y, *states) = rest[: len(self.phases)], rest[len(self.phases) :]
        own, cell, between, *multiplied = self._buffers(f)
        first = [self.length - 1 if backwards else 0 for backwards in self.backwards]
        table = f.module.table("first", first)

        def unit(index: Value, carried: list[Value]) -> None:
            direction, block = f.divmod(index, self._blocks)
            sample = f.multiply(block, self.block)
            samples = f.minimum(f.subtract(self.batch, sample), self.block)
            ends = [f.at(p, offset(f, s[:2], (sample, direction))) for p, s in zip(states, self.states, strict=True)]
            pairs = list(zip(ends[::2], ends[1::2], self.states[::2], self.states[1::2], strict=True))
            for (begin, _, strides, _), buffer in zip(pairs, (own, cell), strict=False):
                self._copy(f, samples, begin, strides, buffer, (self.pitch, 0, 4))
            self._begin(f, samples, own, multiplied[0])
            row = self.length * self._width * 4
            start = f.at(gates, offset(f, (self.batch * row, row), (direction, sample)))
            result = f.at(y, offset(f, self.y[:2], (sample, direction)))
            panels = [f.at(w, f.multiply(direction, n)) for w, n in zip(weights, self._weights(), strict=True)]
            bias = f.at(inner, f.multiply(direction, self.pitch))
            at = f.load_int(table, f.multiply(direction, 8))

            def step(turn: Value, state: list[Value]) -> list[Value]:
                # forwards 0 − turn, backwards length − 1 − turn
                time = f.value("i64", f"call i64 @llvm.abs.i64(i64 {f.subtract(at, turn)}, i1 false)")
                place, source = f.at(start, f.multiply(time, self._width * 4)), state[0]
                for k, packed in enumerate(self.phases):
                    last = k == len(self.phases) - 1
                    target = state[1] if last else between
                    kept = self._kept(own, state[0])
                    results = [place, target, cell, kept, bias, f.at(result, f.multiply(time, self.y[2]))]
                    self._write_phase(f, k, samples, source, panels[k], results)
                    place, source = f.at(place, packed.width(self.hidden, self.lanes) * 4), target
                return [state[1], state[0]]

            final = f.loop(0, self.length, 1, step, multiplied)
            for (_, end, _, strides), buffer in zip(pairs, (self._kept(own, final[0]), cell), strict=False):
                self._copy(f, samples, buffer, (self.pitch, 0, 4), end, strides)

        self._prepare(f)
        f.loop(f["begin"], f["end"], 1, unit)
        self._complete(f)

    def _prepare(self, f: Function) -> None:
        """Write what a thread does before its first unit."""

    def _complete(self, f: Function) -> None:
        """Write what it does after the last one."""

    def _begin(self, f: Function, samples: Int, own: Value, multiplied: Value) -> None:
        """Write what products of the first step read, where that is not the state that samples begin with."""

    def _kept(self, own: Value, multiplied: Value) -> Value:
        """Which holds the state of the last step in f32: its own buffer, or what products read."""
        return multiplied

    def _weights(self) -> list[int]:
        """Bytes of the weights of one direction, of each phase."""
        return [p.width(self.hidden, self.lanes) * self._words * 4 for p in self.phases]

    def _copy(
        self, f: Function, samples: Int, x: Value, x_strides: tuple[int, ...], y: Value, y_strides: tuple[int, ...]
    ) -> None:
        """Copy the state of some samples; strides are those of [batch, directions, hidden]."""

        def sample(index: Value, _: list[Value]) -> None:
            source, target = f.at(x, f.multiply(index, x_strides[0])), f.at(y, f.multiply(index, y_strides[0]))

            def vector(at: Int, count: int | None) -> None:
                found = read(f, source, f.multiply(at, x_strides[2]), x_strides[2], count)
                write(f, found, target, f.multiply(at, y_strides[2]), y_strides[2], count)

            each_vector(f, self.hidden, vector)

        f.loop(0, samples, 1, sample)

    def _write_phase(
        self, f: Function, k: int, samples: Int, source: Value, weights: Value, results: list[Value]
    ) -> None:
        """A phase of one step: panel by panel."""
        packed = self.phases[k]
        panels = packed.panels(self.hidden, self.lanes)
        write_panel = self._panel(f, k, samples)
        # strides of the gates, the new state, the cell, the state, the bias and y
        vectors = packed.vectors * self.lanes
        strides = (packed.panel * self.lanes * 4, vectors * self._size, *(vectors * 4,) * 3, vectors * self.y[3])

        def panel(index: Int, *, last: bool) -> None:
            w = f.at(weights, f.multiply(index, packed.panel * self.lanes * self._words * 4))
            write_panel(source, w, [f.at(p, f.multiply(index, n)) for p, n in zip(results, strides, strict=True)], last)

        f.loop(0, panels - 1, 1, lambda index, _: panel(index, last=False))
        panel(panels - 1, last=True)

    @property
    def _by_sample(self) -> tuple[int, ...]:
        """Strides of the gates, the new state, the cell, the state, the bias and y."""
        return self.length * self._width * 4, self._row, self.pitch, self.pitch, 0, self.y[0]

    def _panel(self, f: Function, k: int, samples: Int) -> WritePanel:
        """What writes the panels of a phase: tile by tile."""
        most = self.phases[k].rows
        tiles = f.multiply(f.divide(samples, most), most)

        def panel(source: Value, w: Value, places: list[Value], last: bool) -> None:
            def tile(rows: int) -> Callable[[Value, list[Value]], None]:
                def body(sample: Value, _: list[Value]) -> None:
                    own = [f.at(p, f.multiply(sample, n)) for p, n in zip(places, self._by_sample, strict=True)]
                    f.call(self._tile(f, k, rows, last=last), [f.at(source, f.multiply(sample, self._row)), w, *own])

                return body

            f.loop(0, tiles, most, tile(most))
            if most > 1:
                f.loop(tiles, samples, 1, tile(1))

        return panel

    def _tile(self, caller: Function, k: int, rows: int, *, last: bool) -> str:
        """The name of the function for a tile of a phase, in the last panel or in another."""
        name = f"phase{k}_{rows}_{'last' if last else 'whole'}"
        if not caller.module.has(name):
            f = caller.module.function(name, [f"ptr {p}" for p in ("h", "w", *PLACES)])
            packed = self.phases[k]
            own = tuple(Row(r * self._row) for r in range(rows))
            tile = Tile(own, packed.panel, packed.panel, (Level(self._words, 4),), pairs=self.element != F32)
            sums = write_sums(f, tile, f["h"], f["w"], {})
            for r in range(rows):
                self._write_row(f, k, r, sums[r * packed.panel : (r + 1) * packed.panel], last=last)
        return name

    def _write_row(self, f: Function, k: int, row: int, sums: list[Value], *, last: bool) -> None:
        """The state of one sample of a tile, in the last panel or in another."""
        packed = self.phases[k]
        begin = (packed.panels(self.hidden, self.lanes) - 1) * packed.vectors * self.lanes if last else 0
        gates = len(packed.phase.gates)
        for v in range(packed.vectors):
            elements = min(self.lanes, self.hidden - begin - v * self.lanes) if last else self.lanes
            if elements > 0:
                self._write_state(f, k, row, v, sums[v * gates : (v + 1) * gates], elements)

    def _write_state(self, f: Function, k: int, row: int, v: int, sums: list[Value], count: int) -> None:
        """One vector of the state of one sample, of its products."""
        phase = self.phases[k].phase
        nbytes, place = f.target.bytes, v * f.target.bytes
        gates = row * self.length * self._width * 4 + place * len(phase.gates)
        inputs = [f.load(f["gates"], gates + g * nbytes) for g in range(len(phase.gates))]
        together = len(sums) - phase.apart
        operands = [f.arithmetic("fadd", a, b) for a, b in zip(inputs[:together], sums[:together], strict=True)]
        if phase.apart:
            operands += [inputs[-1], f.arithmetic("fadd", sums[-1], f.load(f["bias"], place))]
        operands += [f.load(f[name], row * self.pitch + place) for name in phase.reads]
        results = evaluate(f, phase.expression, operands)
        self._store(f, k, row, v, results[0], count)
        if phase.stores:
            f.store(results[1], f["cell"], row * self.pitch + place)
        if k == len(self.phases) - 1:
            write(f, results[0], f["y"], row * self.y[0] + v * self.lanes * self.y[3], self.y[3], count)

    def _store(self, f: Function, k: int, row: int, v: int, state: Value, count: int) -> None:
        """Store one vector of the new state of one sample, or of what the next phase multiplies."""
        f.store(state, f["target"], row * self.pitch + v * f.target.bytes)

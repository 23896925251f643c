"""The recurrence of LSTM, GRU and RNN sequences: per step, a product with the state, then the cell in registers.

An earlier kernel computes the products of the inputs of all steps. The packed weights of all gates are adjacent for
each vector of the state, so a tile of sums has all gates of its elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from irload.plan.backends.llvm.arguments import Arguments, unknown
from irload.plan.backends.llvm.axes import ANY
from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.dot import Dot
from irload.plan.backends.llvm.elements import BF16, F32, SIZES
from irload.plan.backends.llvm.expressions import evaluate, expression_cycles
from irload.plan.backends.llvm.intrinsics import distance
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import each_vector
from irload.plan.backends.llvm.kernels.recurrent_sums import Operand, PackedPhase, PhasePanel, StateSums
from irload.plan.backends.llvm.operands import read, write
from irload.record import record


@record(eq=False)
class BlockLengths:
    """The lengths, in i64, of `samples` sequences of at most `limit` elements; `stride` is in bytes.

    A block runs for as many steps as its longest sequence, and shorter sequences take part in all of them. Forwards,
    their states are stored at their ends, and later results are cleared. Backwards, they restart from the initial
    states at their ends.

    `first` is the first position of the longest possible sequence: 0 forwards, `limit` − 1 backwards.
    """

    f: Function
    pointer: Pointer
    stride: AnyInt
    samples: AnyInt
    limit: AnyInt
    first: Int

    @property
    def backwards(self) -> Bool:
        """False for sequences of one element, which have the same result in both directions."""
        return self.f.differ(self.first, 0)

    def longest(self) -> AnyInt:
        """The length of the longest sequence."""
        maximum: list[AnyInt] = [self.f.integer(0)]
        for sample in self.f.range(0, self.samples, 1, maximum):
            maximum[0] = self.f.maximum(maximum[0], self.of(sample))
        return maximum[0]

    def each_last(self, time: Int, direction: Bool) -> Iterator[Int]:
        """`for sample in …`: a loop over the sequences whose last element is at `time`, if the direction is given."""
        with self.f.when(direction):
            yield from self.each(time + 1)

    def each(self, length: AnyInt) -> Iterator[Int]:
        """`for sample in …`: a loop over the sequences of this length."""
        for sample in self.f.range(0, self.samples):
            with self.f.when(self.f.equal(self.of(sample), length)):
                yield sample

    def of(self, sample: Int) -> Int:
        """The length of a sequence."""
        return self.f.load_int(self.pointer, sample * self.stride)


Strides = Sequence[AnyInt]
"""Strides in bytes along [batch, directions, hidden]."""

State = tuple[Pointer, Strides]
"""A state of several samples, and its strides."""

Ends = tuple[Pointer, Strides, Pointer]
"""An initial or final state, its strides, and the buffer of the state."""


@record()
class Recurrence(Kernel):
    """All steps of a sequence. A unit is a block of samples in one direction.

    Pointers: gates [directions, batch, length, width], the lengths of the sequences (or null), the weights of each
    phase [directions, panels, words, panel], the bias of products with a separate bias (or null), y, the initial and
    the final state, and for LSTM the initial and the final cell state. Strides are in bytes: of y [batch, directions,
    length, hidden], of states [batch, directions, hidden]. `lengths` is the stride of the lengths, in i64, or None if
    all sequences are whole.

    The state is f32. Products read a copy of it in the type of their dot; each step writes the copy for the next.

    The code reads the batch, the length and all strides except those along the state. Compiled in: the size of the
    state, whose products are unrolled; the cell; the samples of a block, at most 16, which are rows of tiles; the
    number of directions.
    """

    lanes: int
    phases: tuple[PackedPhase, ...]
    sums: StateSums
    backwards: tuple[bool, ...]
    batch: int
    length: int
    y: tuple[int, ...]
    states: tuple[tuple[int, ...], ...]
    lengths: int | None = None

    @property
    def instruction(self) -> Dot:
        return self.sums.dot

    @property
    def code(self) -> Recurrence:
        sizes = {"batch": ANY, "length": ANY, "lengths": None if self.lengths is None else ANY}
        strides = {"y": (ANY, ANY, ANY, self.y[3]), "states": tuple((ANY, ANY, s[2]) for s in self.states)}
        return replace(self, backwards=(False,) * len(self.backwards), **sizes, **strides)

    @property
    def numbers(self) -> tuple[int, ...]:
        first = (self.length - 1 if backwards else 0 for backwards in self.backwards)
        return (self._blocks, *unknown(self, self.code), *first)

    @property
    def hidden(self) -> int:
        """Elements of the state of a sample."""
        return self.sums.hidden

    @property
    def _blocks(self) -> int:
        return -(-self.batch // self.sums.block)

    @property
    def count(self) -> int:
        return len(self.backwards) * self._blocks

    @property
    def cycles(self) -> float:
        steps = len(self.backwards) * self.length
        vectors = -(-self.hidden // self.lanes)
        gates = sum(expression_cycles(p.phase.expression) for p in self.phases) * vectors
        return steps * (self.sums.cycles(self.batch, self.width // self.lanes) + self.batch * gates)

    @property
    def width(self) -> int:
        """The number of f32 of the gates of one sample and step, in all phases."""
        return sum(p.width(self.hidden, self.lanes) for p in self.phases)

    @property
    def pitch(self) -> int:
        """Bytes of the state of one sample, padded to whole panels."""
        return max(p.panels(self.hidden, self.lanes) * p.vectors for p in self.phases) * self.lanes * 4

    @property
    def row(self) -> int:
        """The sample stride, in bytes, of the copies of the state that products read."""
        return self.sums.row(self.pitch)

    @property
    def kept(self) -> int:
        """The bytes of the states and the cell states of a block."""
        return 2 * self.sums.block * self.pitch

    @property
    def scratch(self) -> int:
        return self.kept + 3 * self.sums.block * self.row + self.sums.memory

    def write(self, f: Function) -> None:
        steps = _Steps(f, self)
        self.sums.begin(f, steps.memory)
        for unit in f.range(f["begin"], f["end"]):
            steps.write(unit)
        self.sums.end(f, steps.memory)


class _Steps:
    """Emits the code of a `Recurrence`."""

    def __init__(self, f: Function, kernel: Recurrence) -> None:
        self.f, self.kernel = f, kernel
        phases, states = len(kernel.phases), len(kernel.states)
        arguments = Arguments(f)
        (self.gates, self.lengths), self.weights = arguments.pointers(2), arguments.pointers(phases)
        self.inner, self.y, *self.ends = arguments.pointers(2 + states)
        self.blocks, self.given, self.first = arguments.integer(), arguments.filled(kernel), arguments.rest
        block, row = kernel.sums.block, kernel.row
        self.state, self.cell = self.kept = [f["scratch"] + k * block * kernel.pitch for k in range(2)]
        self.inside = kernel.pitch, 0, 4
        self.read = [f["scratch"] + (kernel.kept + k * block * row) for k in range(3)]
        self.memory = f["scratch"] + (kernel.kept + 3 * block * row)

    def write(self, unit: Int) -> None:
        """Emit all steps of a unit."""
        f, kernel, given = self.f, self.kernel, self.given
        direction, block = divmod(unit, self.blocks)
        sample = block * kernel.sums.block
        samples = f.minimum(given.batch - sample, kernel.sums.block)
        ends = [p + (sample * s[0] + direction * s[1]) for p, s in zip(self.ends, given.states, strict=True)]
        before, after = (list(zip(ends[k::2], given.states[k::2], self.kept, strict=False)) for k in range(2))
        for at in f.range(0, 3 * kernel.sums.block * kernel.row, f.lanes * 4):
            f.store(f.zero(), self.read[0], at)
        now, following, between = self.read
        self._start(before, now, samples)
        row = given.length * (kernel.width * 4)
        gates = self.gates + (direction * (given.batch * row) + sample * row)
        y = self.y + (sample * given.y[0] + direction * given.y[1])
        bias = self.inner + direction * kernel.pitch
        nbytes = [p.width(kernel.hidden, kernel.lanes) for p in kernel.phases]
        weights = [w + direction * (n * kernel.sums.words * 4) for w, n in zip(self.weights, nbytes, strict=True)]
        at, state, length, lengths = f.load_int(self.first, direction * 8), [now, following], given.length, None
        if given.lengths is not None:
            pointer = self.lengths + sample * given.lengths
            lengths = BlockLengths(f, pointer, given.lengths, samples, length, at)
            length = lengths.longest()
            at = f.minimum(at, length - 1)
        for turn in f.range(0, length, 1, state):
            time = distance(f, at, turn)  # forwards |0 − turn|, backwards length − 1 − turn
            for index in lengths.each_last(time, lengths.backwards) if lengths else ():
                self._start(before, state[0], 1, index)
            gates_of, source = gates + time * (kernel.width * 4), state[0]
            for k in range(len(kernel.phases)):
                target = state[1] if k == len(kernel.phases) - 1 else between
                states = [(p, kernel.pitch) for p in (self.cell, self.state)]
                results = (y + time * given.y[2], given.y[0])
                operands = [(gates_of, row), (target, kernel.row), *states, (bias, 0), results]
                self._phase(k, samples, source, weights[k], operands)
                gates_of, source = gates_of + nbytes[k] * 4, target
            state.reverse()
            for index in lengths.each_last(time, f.equal(lengths.first, 0)) if lengths else ():
                self._stop(after, 1, index)
        if lengths is None:
            self._stop(after, samples)
        else:
            self._finish(lengths, y, after)

    def _finish(self, lengths: BlockLengths, y: Pointer, after: Sequence[Ends]) -> None:
        """Emit the final states backwards, and the zeros beyond the ends of sequences and for empty sequences."""
        with self.f.when(lengths.backwards):
            self._stop(after, lengths.samples)
        for index in self.f.range(0, lengths.samples):
            for time in self.f.range(lengths.of(index), lengths.limit):
                self._clear(y + index * self.given.y[0] + time * self.given.y[2], self.kernel.y[3])
        for index in lengths.each(0):
            for end, strides, _ in after:
                self._clear(end + index * strides[0], strides[2])

    def _clear(self, row: Pointer, stride: AnyInt) -> None:
        """Fill a state with zeros."""
        f, hidden = self.f, self.kernel.hidden
        for at, count in each_vector(f, hidden, hidden):
            write(f, f.zero(), row, at * stride, stride, count)

    def _start(self, before: Sequence[Ends], now: Pointer, samples: AnyInt, first: AnyInt = 0) -> None:
        """Copy initial states to their buffers, and to `now` for products."""
        for begin, strides, buffer in before:
            self._copy(samples, first, (begin, strides), (buffer, self.inside), F32)
        element = self.kernel.sums.dot.a
        read = now, (self.kernel.row, 0, SIZES[element])
        self._copy(samples, first, (self.state, self.inside), read, element)

    def _stop(self, after: Sequence[Ends], samples: AnyInt, first: AnyInt = 0) -> None:
        """Copy states from their buffers to the final states."""
        for end, strides, buffer in after:
            self._copy(samples, first, (buffer, self.inside), (end, strides), F32)

    def _copy(self, samples: AnyInt, first: AnyInt, source: State, target: State, element: str) -> None:
        """Copy states of samples from `first` on, converted to `element`."""
        f, (x, x_strides), (y, y_strides) = self.f, source, target
        for index in f.range(first, first + samples):
            row, copy = x + index * x_strides[0], y + index * y_strides[0]
            for at, count in each_vector(f, self.kernel.hidden, self.kernel.hidden):
                value = read(f, row, at * x_strides[2], x_strides[2], count)
                write(f, value, copy, at * y_strides[2], y_strides[2], count, element)

    def _phase(self, k: int, samples: AnyInt, source: Pointer, weights: Pointer, operands: Sequence[Operand]) -> None:
        """Emit a phase of one step, panel by panel; the last panel may be partial."""
        kernel, packed = self.kernel, self.kernel.phases[k]
        last, vectors = packed.panels(kernel.hidden, kernel.lanes) - 1, packed.vectors * kernel.lanes
        row = vectors * 4
        steps = (row * len(packed.phase.gates), vectors * SIZES[kernel.sums.dot.a], row, row, row)
        steps = (*steps, vectors * kernel.y[3])

        def panel(index: AnyInt, begin: int | None) -> None:
            name = f"phase{k}{'' if begin is None else 'last'}"
            w = weights + index * (packed.panel * kernel.lanes * kernel.sums.words * 4)
            moved = [(p + index * n, stride) for (p, stride), n in zip(operands, steps, strict=True)]
            write_row = partial(self._write_row, k=k, begin=begin)
            panel = PhasePanel(name, packed, samples, source, w, moved, self.memory, write_row)
            kernel.sums.write(self.f, panel, kernel.row)

        for index in self.f.range(0, last):
            panel(index, None)
        panel(last, last * vectors)

    def _write_row(self, f: Function, row: int, sums: list[Vec], k: int, begin: int | None) -> None:
        """Emit the new state of row `row` of a tile from the sums of a panel of phase `k`, in a function with OPERANDS.

        `begin`: the index of the first element of the last panel; None for other panels.
        """
        gates = len(self.kernel.phases[k].phase.gates)
        for v in range(len(sums) // gates):
            rest = f.lanes if begin is None else self.kernel.hidden - begin - v * f.lanes
            if rest > 0:
                self._write_vector(f, row, v, sums[v * gates : (v + 1) * gates], k, min(rest, f.lanes))

    def _write_vector(self, f: Function, row: int, v: int, sums: list[Vec], k: int, count: int) -> None:
        """Emit `count` elements of the new state. In bf16 the other lanes are 0, since products read pairs."""
        kernel, phase, element = self.kernel, self.kernel.phases[k].phase, self.kernel.sums.dot.a
        nbytes, pitch = f.target.bytes, row * kernel.pitch + v * f.target.bytes
        gates = f["gates"] + row * f["gates_row"]
        inputs = [f.load(gates, (v * len(sums) + g) * nbytes) for g in range(len(sums))]
        together = len(sums) - phase.apart
        operands = [a + b for a, b in zip(inputs[:together], sums[:together], strict=True)]
        if phase.apart:
            operands += [inputs[-1], sums[-1] + f.load(f["bias"], v * nbytes)]
        operands += [f.load(f[name], pitch) for name in phase.reads]
        state, *cell = evaluate(phase.expression, operands)
        size, multiplied = SIZES[element], state
        if element == BF16 and count < f.lanes:
            multiplied = f.select(f.mask(count), state, f.zero())
        write(f, multiplied, f["target"], row * kernel.row + v * f.lanes * size, size, None, element)
        if phase.stores:
            f.store(cell[0], f["cell"], pitch)
        if k == len(kernel.phases) - 1:
            f.store(state, f["state"], pitch)
            y = f["y"] + row * f["y_row"]
            write(f, state, y, v * f.lanes * kernel.y[3], kernel.y[3], count)

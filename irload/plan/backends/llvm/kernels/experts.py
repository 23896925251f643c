"""Mixtures of experts: rows are sorted by expert, then one contraction per expert multiplies them.

The number of rows of each expert is counted at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from irload.core.size import hint
from irload.plan.backends.llvm.arguments import WORD, Arguments
from irload.plan.backends.llvm.axes import ANY, Axis
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer
from irload.plan.backends.llvm.dot import FMA, Dot, compressed_dot
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.contraction.build import ResultTensors, packing_of, rows_product
from irload.plan.backends.llvm.kernels.contraction.chunks import Chunks
from irload.plan.backends.llvm.kernels.contraction.product import Product
from irload.plan.backends.llvm.kernels.matmul import compression, packed_codes, packed_matrices
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tile import tile_shape
from irload.plan.backends.llvm.tuning import ANY_COLUMNS, PANEL, WIDEST_ROW
from irload.plan.backends.llvm.widening import CompressedPanel
from irload.plan.ir.expression import IDENTITY
from irload.plan.ir.steps import ExpertMatMulStep, ExpertOrderStep
from irload.record import record


@record()
class ExpertOrder(Kernel):
    """Sorts pairs of a row and an expert by expert: a counting sort on one thread.

    There are `rows` rows, of which each has `chosen` experts. Pointers: chosen, row, expert, counts, positions.

    The results are i32. `index`: bytes of an expert in `chosen`; `strides`: bytes, of both axes of `chosen`, of `row`,
    `expert` and `counts`, and of both axes of `positions`.
    """

    rows: int
    chosen: int
    experts: int
    index: int
    strides: tuple[int, ...]

    @property
    def code(self) -> ExpertOrder:
        return replace(self, rows=ANY, chosen=ANY, experts=ANY, strides=(ANY,) * len(self.strides))

    @property
    def count(self) -> int:
        return 1

    @property
    def cycles(self) -> float:
        return 8 * self.rows * self.chosen + 4 * self.experts

    @property
    def scratch(self) -> int:
        return WORD * self.experts

    def write(self, f: Function) -> None:
        arguments = Arguments(f)
        (chosen, row, expert, counts, positions), given = arguments.pointers(5), arguments.filled(self)
        along, across, row_step, expert_step, count_step, *position_steps = given.strides
        ends: Pointer = f["scratch"]

        def pairs() -> Iterator[tuple[AnyInt, AnyInt, AnyInt]]:
            """The row, the column and the expert of each pair."""
            for at in f.range(0, given.rows):
                for k in f.range(0, given.chosen):
                    yield at, k, f.load_int(chosen, at * along + k * across, f"i{8 * self.index}")

        for e in f.range(0, given.experts):
            f.store_scalar(0, ends, e * WORD)
        for _, _, e in pairs():
            f.store_scalar(f.load_int(ends, e * WORD) + 1, ends, e * WORD)
        start = [f.integer(0)]
        for e in f.range(0, given.experts, 1, start):
            total = f.load_int(ends, e * WORD)
            f.store_i32(total, counts, e * count_step)
            f.store_scalar(start[0], ends, e * WORD)
            start[0] = f.integer(start[0] + total)
        for at, k, e in pairs():
            position = f.load_int(ends, e * WORD)
            f.store_scalar(position + 1, ends, e * WORD)
            f.store_i32(at, row, position * row_step)
            f.store_i32(e, expert, position * expert_step)
            f.store_i32(position, positions, at * position_steps[0] + k * position_steps[1])


def select_expert_order(step: ExpertOrderStep, selector: Selector) -> list[Launch]:
    """The kernel that sorts pairs by expert."""
    arrays = [selector.array(v) for v in (*step.inputs, *step.outputs)]
    chosen, counts, strides = arrays[0], arrays[3], [s for a in arrays for s in a.strides]
    rows, k = chosen.shape
    kernel = ExpertOrder(rows, k, counts.shape[0], chosen.itemsize, tuple(strides))
    return [selector.launch(kernel, arrays)]


@record()
class ExpertMatMul(Kernel):
    """y[row] = x[row] · w[expert of the row]. Pointers: x, counts, y, then the packed weights of each expert.

    `single`: the contraction of one row, which has `words` numbers; `several`: of any number of rows. A unit is a group
    of panels of `single`, that is, one or more of `several`, for all experts. `rows`: the number of all rows.
    `strides`: bytes between the rows of x, the counts, and the rows of y. `index`: bytes of a count.
    """

    experts: int
    rows: int
    strides: tuple[int, int, int]
    index: int
    single: Product
    several: Product
    words: tuple[int, int]

    @property
    def instruction(self) -> Dot:
        return self.single.dot

    @property
    def code(self) -> ExpertMatMul:
        return replace(self, rows=0, strides=(0, 0, 0), single=self.single.code, several=self.several.code)

    @property
    def numbers(self) -> tuple[int, ...]:
        return (*self.strides, self.several.panels, *self.single.numbers, *self.several.numbers)

    @property
    def count(self) -> int:
        return self.single.panels

    @property
    def cycles(self) -> float:
        return self.rows * self.single.cycles

    def write(self, f: Function) -> None:
        arguments = Arguments(f)
        x, counts, y = arguments.pointers(3)
        weights = arguments.rest
        arguments.pointers(self.experts)
        x_stride, step, y_stride, panels = arguments.integers(4)
        single, several = (
            _Table(f, product, arguments.integers(words))
            for product, words in zip((self.single, self.several), self.words, strict=True)
        )
        groups = self.single.vectors // self.several.vectors
        begin, end = f["begin"], f["end"]
        start = [f.integer(0)]
        for expert in f.range(0, self.experts, 1, start):
            first, rows = start[0], f.load_int(counts, expert * step, f"i{8 * self.index}")
            matrix = f.load_pointer(weights, expert * WORD)
            pointers = [x + first * x_stride, matrix, y + first * y_stride]
            with f.when(f.equal(rows, 1)):
                single.call("single", pointers, begin, end)
            with f.when(rows > 1):
                several.set(self.several.sized_for(rows))
                several.call("several", pointers, begin * groups, f.minimum(end * groups, panels))
            start[0] = f.integer(first + rows)


class _Table:
    """The arguments of a contraction, in stack memory: pointers, then numbers."""

    def __init__(self, f: Function, product: Product, numbers: Sequence[AnyInt]) -> None:
        self._f, self._product = f, product
        self._memory = f.local(WORD * (3 + len(numbers)))
        self.set(dict(enumerate(numbers)))

    def set(self, numbers: Mapping[int, AnyInt]) -> None:
        """Store numbers by position."""
        for k, number in numbers.items():
            self._f.store_scalar(number, self._memory, WORD * (3 + k))

    def call(self, name: str, pointers: Sequence[Pointer], begin: AnyInt, end: AnyInt) -> None:
        """Call the function of the contraction for a range of panels."""
        f = self._f
        for k, pointer in enumerate(pointers):
            f.store_scalar(pointer, self._memory, WORD * k)
        scratch = {"scratch": f["scratch"], "ahead": f["ahead"]}
        f.call(name, {"arguments": self._memory, "begin": begin, "end": end, **scratch}, self._product.write)


def select_expert_matmul(step: ExpertMatMulStep, selector: Selector) -> list[Launch]:
    """The kernel of the products of experts."""
    x, counts, y = (selector.array(v) for v in (*step.inputs[:2], step.output))
    axis, target = -1 if step.transpose else -2, selector.target
    rows, (depth, columns) = y.shape[0], (x.shape[1], y.shape[1])
    forms = {compression(w, hint(rows), axis, selector) for w in step.weights}
    form = forms.pop() if len(forms) == 1 else None
    dot = FMA if form is None else compressed_dot(form)
    chunks, results = Chunks.in_place(depth, x.strides[1], dot), ResultTensors.of([y], -1, columns, IDENTITY)
    levels, strides = chunks.levels(dot), (x.strides[0], counts.strides[0], y.strides[0])
    single, several = (
        rows_product(target, dot, Axis(size, (0, strides[0], strides[2])), levels, results, shape)
        for size, shape in zip((1, ANY_COLUMNS), _shapes(target, dot, columns, hint(strides[0])), strict=True)
    )
    words = len(single.numbers), len(several.numbers)
    kernel = ExpertMatMul(step.experts, rows, strides, counts.itemsize, single, several, words)
    if form is None:
        packing = packing_of(several, chunks)
        packed = [packed_matrices(w, packing, selector, transposed=step.transpose) for w in step.weights]
    else:
        codes = CompressedPanel(form, depth, several.packed_channels)
        packed = [packed_codes(w, codes, axis, selector) for w in step.weights]
    if step.is_stacked:
        packed = packed[0].reshape(step.experts, -1)
    return [selector.launch(kernel, [x, counts, y, *packed])]


def _shapes(target: Target, dot: Dot, columns: int, pitch: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The shapes of a tile of one row, and of a tile of many rows, whose width divides the width of the first."""
    panel = min(PANEL, -(-columns // target.lanes))
    if dot.weights is None:
        single = tile_shape(target, 1, columns, panel, pitch, WIDEST_ROW, dot)
        several = tile_shape(target, ANY_COLUMNS, columns, panel, pitch, WIDEST_ROW, dot)
    else:
        most = target.registers // 2
        single, several = (1, panel * max(1, min(4, -(-columns // target.lanes)) // panel)), (most // panel, panel)
    return (1, max(single[1] // several[1], 1) * several[1]), several

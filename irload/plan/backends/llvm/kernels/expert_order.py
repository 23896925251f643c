"""Sorts pairs of a row and an expert by expert: a counting sort on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irload.plan.backends.llvm.arguments import WORD, Arguments
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.steps import ExpertOrderStep
from irload.record import record


@record()
class ExpertOrder(Kernel):
    """The pairs of `rows` rows, of which each has `chosen` experts. Pointers: chosen, row, expert, counts, positions.

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
        return replace(self, rows=0, chosen=0, experts=0, strides=())

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.rows, self.chosen, self.experts, *self.strides)

    @property
    def count(self) -> int:
        return 1

    @property
    def cycles(self) -> float:
        return 8 * self.rows * self.chosen + 4 * self.experts

    @property
    def scratch(self) -> int:
        return WORD * self.experts

    def write(self, function: Function) -> None:
        f, given = function, Arguments(function)
        chosen, row, expert, counts, positions = given.pointers(5)
        rows, width, experts, *strides = given.integers(10)
        along, across, row_step, expert_step, count_step, *position_steps = strides
        ends: Pointer = f["scratch"]

        def pairs() -> Iterator[tuple[AnyInt, AnyInt, AnyInt]]:
            """The row, the column and the expert of each pair."""
            for at in f.range(0, rows):
                for k in f.range(0, width):
                    yield at, k, f.load_int(chosen, at * along + k * across, f"i{8 * self.index}")

        for e in f.range(0, experts):
            f.store_scalar(0, ends, e * WORD)
        for _, _, e in pairs():
            f.store_scalar(f.load_int(ends, e * WORD) + 1, ends, e * WORD)
        start = [f.integer(0)]
        for e in f.range(0, experts, 1, start):
            total = f.load_int(ends, e * WORD)
            _store(f, total, counts, e * count_step)
            f.store_scalar(start[0], ends, e * WORD)
            start[0] = f.integer(start[0] + total)
        for at, k, e in pairs():
            position = f.load_int(ends, e * WORD)
            f.store_scalar(position + 1, ends, e * WORD)
            _store(f, at, row, position * row_step)
            _store(f, e, expert, position * expert_step)
            _store(f, position, positions, at * position_steps[0] + k * position_steps[1])


def _store(f: Function, number: AnyInt, pointer: Pointer, offset: AnyInt) -> None:
    """Store an integer as i32."""
    f.store_scalar(f.integer(number).cast("trunc", "i32"), pointer, offset)


def select_expert_order(step: ExpertOrderStep, selector: Selector) -> list[Launch]:
    """The kernel that sorts pairs by expert."""
    arrays = [selector.array(v) for v in (*step.inputs, *step.outputs)]
    chosen, counts, strides = arrays[0], arrays[3], [s for a in arrays for s in a.strides]
    rows, k = chosen.shape
    kernel = ExpertOrder(rows, k, counts.shape[0], chosen.itemsize, tuple(strides))
    return [selector.launch(kernel, arrays)]

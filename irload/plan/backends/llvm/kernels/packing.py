"""Packing matrices that are not constant into panels, as products read their weights."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import ClassVar

from irload.plan.backends.llvm.axes import Axis, offsets
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.operands import read
from irload.plan.backends.llvm.shuffles import transposed
from irload.record import record


@record()
class PackPanels(Kernel):
    """Matrices [outer…, K, N] of any strides → panels [outer…, panels, K, panel·lanes]. Pointers: from, to.

    What a panel has beyond the N columns is any number of the matrix, or 0.
    `strides`: bytes between matrices along each outer axis; `steps`: between rows and between columns of one.
    """

    lanes: int
    outer: tuple[int, ...]
    strides: tuple[int, ...]
    shape: tuple[int, int]
    steps: tuple[int, int]
    panel: int

    prepares: ClassVar[bool] = True

    @property
    def _width(self) -> int:
        """The columns of a panel."""
        return self.panel * self.lanes

    @property
    def _panels(self) -> int:
        return -(-self.shape[1] // self._width)

    @property
    def nbytes(self) -> int:
        """The bytes of all panels."""
        return self.count * self.shape[0] * self._width * 4

    @property
    def count(self) -> int:
        return prod(self.outer) * self._panels

    @property
    def cycles(self) -> float:
        each = 2 if self.steps[1] == 4 else 4 if self._turns else 2 * self.lanes
        return self.count * self.shape[0] * self.panel * each

    @property
    def _turns(self) -> bool:
        """True where rows of panels are read along columns of the matrix, square by square."""
        return self.steps[0] == 4 and self.steps[1] != 4 and self.shape[0] >= self.lanes

    def write(self, function: Function) -> None:
        f = function
        source, target = (f.load_pointer(f["arguments"], 8 * k) for k in range(2))
        axes = [Axis(n, (stride,)) for n, stride in zip(self.outer, self.strides, strict=True)]
        rest = self.shape[1] - (self._panels - 1) * self._width
        copy = self._by_squares if self._turns else self._by_rows

        def unit(index: Value, _: list[Value]) -> None:
            line, p = f.divmod(index, self._panels)
            (offset,) = offsets(f, line, axes, 1)
            start = f.at(source, f.add(offset, f.multiply(p, self._width * self.steps[1])))
            place = f.at(target, f.multiply(index, self.shape[0] * self._width * 4))

            def part(columns: int) -> Callable[[], None]:
                return lambda: copy(f, start, place, columns)

            if rest < self._width and self._panels > 1:
                f.when(f.compare("eq", p, self._panels - 1), part(rest), part(self._width))
            else:
                part(rest)()

        f.loop(f["begin"], f["end"], 1, unit)

    def _by_rows(self, f: Function, start: Value, place: Value, columns: int) -> None:
        def row(k: Value, _: list[Value]) -> None:
            for v in range(self.panel):
                count = max(0, min(self.lanes, columns - v * self.lanes))
                at = f.add(f.multiply(k, self.steps[0]), v * self.lanes * self.steps[1])
                value = read(f, start, at, self.steps[1], count) if count else f.zero()
                f.store(value, place, f.add(f.multiply(k, self._width * 4), v * self.lanes * 4))

        f.loop(0, self.shape[0], 1, row)

    def _by_squares(self, f: Function, start: Value, place: Value, columns: int) -> None:
        """Squares of `lanes` rows and columns are turned in registers; the last ones overlap."""
        length = self.shape[0]
        if not f.module.has("square"):
            self._write_square(f.module.function("square", ["ptr source", "ptr target", "i64 last"]))

        def square(index: Value, _: list[Value]) -> None:
            k: Int = f.minimum(f.multiply(index, self.lanes), length - self.lanes)
            source, target = f.at(start, f.multiply(k, 4)), f.at(place, f.multiply(k, self._width * 4))
            for v in range(0, self._width, self.lanes):
                first = min(v, columns - 1)
                last = min(columns - 1 - first, self.lanes - 1)
                f.call("square", [f.at(source, first * self.steps[1]), f.at(target, v * 4), last])

        f.loop(0, -(-length // self.lanes), 1, square)

    def _write_square(self, f: Function) -> None:
        """Turn a square whose columns lie `steps[1]` bytes apart. Those behind the `last` one are taken for that."""
        columns = [f.minimum(f["last"], column) for column in range(self.lanes)]
        lines = [f.load(f["source"], f.multiply(column, self.steps[1])) for column in columns]
        for k, line in enumerate(transposed(f, lines)):
            f.store(line, f["target"], k * self._width * 4)

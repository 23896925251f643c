"""Results of blocks of sums: each row goes through the epilogue while tiles sum the next block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernels.access import Access
from irload.plan.backends.llvm.operands import read, write_row
from irload.plan.ir.expression import Expression
from irload.record import record

_WAITING, _IS_LAST, _SUMS, _FREE, _PLACES = range(0, 40, 8)
"""Where a thread keeps, of the block whose results are still to be made: how many rows, whether it is of the last
panel, its sums; memory for the next sums; and where y and the operands of each row of tiles begin."""


@record()
class Results:
    """A block is `height` tiles of `rows` columns by `width` tiles of channels, a panel of all `channels`.

    The memory of a thread, `nbytes` for the methods' `memory`, holds two blocks of sums, and what is kept of one.
    """

    rows: int
    height: int
    width: int
    channels: int
    y: Access
    operands: tuple[Access, ...]
    epilogue: Expression

    @property
    def nbytes(self) -> int:
        """The bytes of memory that a thread needs."""
        record = _PLACES + 8 * self.height * self._tensors
        return 2 * self._sums + -(-record // 64) * 64

    @property
    def _sums(self) -> int:
        """The bytes of a block of sums."""
        return self.height * self.width * tiles.NBYTES

    @property
    def _tensors(self) -> int:
        """The arrays of which results have a place: y and the operands."""
        return 1 + len(self.operands)

    @property
    def _lanes(self) -> int:
        """Channels of a panel."""
        return self.width * tiles.ROWS

    @property
    def _panels(self) -> int:
        return -(-self.channels // self._lanes)

    @property
    def _rest(self) -> int:
        """Channels of the last panel."""
        return self.channels - (self._panels - 1) * self._lanes

    @property
    def _differ(self) -> bool:
        """True where the last panel is not as wide as others."""
        return self._panels > 1 and self._rest < self._lanes

    def begin(self, f: Function, memory: Value) -> None:
        """Nothing waits yet."""
        for offset, value in ((_WAITING, 0), (_SUMS, memory), (_FREE, f.at(memory, self._sums))):
            _keep(f, value, self._record(f, memory), offset)

    def waiting(self, f: Function, memory: Value) -> Value:
        """The rows that are still to be finished."""
        return f.load_int(self._record(f, memory), _WAITING)

    def free(self, f: Function, memory: Value) -> Value:
        """Where the next sums go: row by row, each of all tiles of the width."""
        return f.load_pointer(self._record(f, memory), _FREE)

    def stored(self, f: Function, memory: Value) -> None:
        """The sums at `free` are whole, and those before are finished."""
        record = self._record(f, memory)
        finished, free = f.load_pointer(record, _SUMS), f.load_pointer(record, _FREE)
        for offset, value in ((_SUMS, free), (_FREE, finished)):
            _keep(f, value, record, offset)

    def place(self, f: Function, memory: Value, panel: Value, strips: Int, places: Sequence[Value]) -> None:
        """Keep how many rows of tiles wait, and where results of each go: y, then the operands."""
        record = self._record(f, memory)
        _keep(f, f.multiply(strips, self.rows), record, _WAITING)
        if self._differ:
            is_last = f.value("i64", f"zext i1 {f.compare('eq', panel, self._panels - 1)} to i64")
            _keep(f, is_last, record, _IS_LAST)
        for k, place in enumerate(places):
            _keep(f, place, record, _PLACES + 8 * k)

    def finish(self, f: Function, memory: Value, first: Int, stop: Int) -> None:
        """Make results of the rows first…stop−1 that wait."""
        record = self._record(f, memory)

        def call(channels: int) -> Callable[[], None]:
            return lambda: f.call(self._function(f, channels), [record, first, stop])

        if self._differ:
            f.when(f.compare("ne", f.load_int(record, _IS_LAST), 0), call(self._rest), call(self._lanes))
        else:
            call(self._rest)()

    def _record(self, f: Function, memory: Value) -> Value:
        return f.at(memory, 2 * self._sums)

    def _function(self, f: Function, channels: int) -> str:
        """The function for panels of so many channels."""
        name = f"finish{channels}"
        if not f.module.has(name):
            parameters = ["ptr record", "i64 first", "i64 stop"]
            self._write(f.module.function(name, parameters), channels)
        return name

    def _write(self, f: Function, channels: int) -> None:
        sums = f.load_pointer(f["record"], _SUMS)

        def row(index: Value, _: list[Value]) -> None:
            tile, r = f.divmod(index, self.rows)
            places = f.at(f["record"], f.add(f.multiply(tile, 8 * self._tensors), _PLACES))
            y, *operands = (f.load_pointer(places, 8 * k) for k in range(self._tensors))
            own = f.at(sums, f.multiply(index, self.width * tiles.BYTES))
            made: list[Value] = []
            for v in range(-(-channels // f.lanes)):
                lane, count = v * f.lanes, min(f.lanes, channels - v * f.lanes)
                values = [f.load(own, v * f.target.bytes)]
                for operand, access in zip(operands, self.operands, strict=True):
                    offset = f.add(f.multiply(r, access.column), lane * access.channel)
                    values.append(read(f, operand, offset, access.channel, count, access.element))
                made += evaluate(f, self.epilogue, values)
            write_row(f, made, y, f.multiply(r, self.y.column), self.y.channel, channels, self.y.element)

        f.loop(f["first"], f["stop"], 1, row)


def _keep(f: Function, value: Int, pointer: Value, offset: int) -> None:
    """Store an i64 or a pointer."""
    kind = "i64" if isinstance(value, int) else value.type
    f.emit(f"store {kind} {value}, ptr {f.at(pointer, offset)}, align 8")

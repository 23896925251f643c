"""The epilogue of blocks of AMX tiles: rows of sums of one block are finished while tiles sum the next block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernels.contraction.nest import Access
from irload.plan.backends.llvm.kernels.loops import either
from irload.plan.backends.llvm.operands import read, write_row
from irload.plan.ir.expression import Expression
from irload.record import record

_WAITING, _IS_LAST, _SUMS, _FREE, _ADDRESSES = range(0, 40, 8)
"""Offsets in the record of a thread. About the block that waits for its epilogue: the number of rows, whether it is in
the last panel, the address of its sums; then memory for the next sums; then the addresses of y and the operands for
each row of tiles."""


@record()
class TileEpilogue:
    """The epilogue of blocks of sums.

    A block has `height` strips of `rows` columns by a panel of `width` tiles of channels; `channels`: the number of all
    channels. The parameter `memory` of the methods is memory of the thread, `nbytes` bytes, with two blocks of sums and
    the record of one block.
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
        record = _ADDRESSES + 8 * self.height * self._tensors
        return 2 * self._sums + -(-record // 64) * 64

    @property
    def _sums(self) -> int:
        """The bytes of a block of sums."""
        return self.height * self.width * tiles.NBYTES

    @property
    def _tensors(self) -> int:
        """The number of tensors with an address per row of tiles: y and the operands."""
        return 1 + len(self.operands)

    @property
    def _widths(self) -> tuple[int, int]:
        """The channels of the last panel, and of the others."""
        width = self.width * tiles.ROWS
        last = (self.channels - 1) % width + 1
        return last, width if self.channels > width else last

    def begin(self, f: Function, memory: Pointer) -> None:
        """Initialize the record: no rows wait for their epilogue."""
        for offset, value in ((_WAITING, 0), (_SUMS, memory), (_FREE, memory + self._sums)):
            f.store_scalar(value, self._record(memory), offset)

    def waiting(self, f: Function, memory: Pointer) -> Int:
        """The number of rows that wait for their epilogue."""
        return f.load_int(self._record(memory), _WAITING)

    def free(self, f: Function, memory: Pointer) -> Pointer:
        """The address for the next sums, stored row by row; a row has the sums of all channels of a panel."""
        return f.load_pointer(self._record(memory), _FREE)

    def stored(self, f: Function, memory: Pointer) -> None:
        """Swap both buffers: the sums at `free` are complete, and the earlier sums have been finished."""
        record = self._record(memory)
        finished, free = f.load_pointer(record, _SUMS), f.load_pointer(record, _FREE)
        for offset, value in ((_SUMS, free), (_FREE, finished)):
            f.store_scalar(value, record, offset)

    def set_waiting(
        self, f: Function, memory: Pointer, panel: Int, strips: AnyInt, addresses: Sequence[Pointer]
    ) -> None:
        """Record the number of rows that wait, and the addresses of y and the operands for each row of tiles."""
        record = self._record(memory)
        f.store_scalar(strips * self.rows, record, _WAITING)
        last, width = self._widths
        if last < width:
            f.store_scalar(f.equal(panel, self.channels // width).as_int(), record, _IS_LAST)
        for k, address in enumerate(addresses):
            f.store_scalar(address, record, _ADDRESSES + 8 * k)

    def finish(self, f: Function, memory: Pointer, first: AnyInt, stop: AnyInt) -> None:
        """Compute the epilogue of the waiting rows first…stop−1, and store their results."""
        record = self._record(memory)
        arguments = {"record": record, "first": first, "stop": stop}
        last, width = self._widths
        is_last = f.differ(f.load_int(record, _IS_LAST), 0) if last < width else True
        for channels in either(f, is_last, last, width):
            f.call(f"finish{channels}", arguments, partial(self._write, channels=channels))

    def _record(self, memory: Pointer) -> Pointer:
        return memory + 2 * self._sums

    def _write(self, f: Function, channels: int) -> None:
        """Emit the function that finishes rows of panels with `channels` channels."""
        sums = f.load_pointer(f["record"], _SUMS)
        for index in f.range(f["first"], f["stop"]):
            tile, r = divmod(index, self.rows)
            addresses = f["record"] + (tile * (8 * self._tensors) + _ADDRESSES)
            y, *operands = (f.load_pointer(addresses, 8 * k) for k in range(self._tensors))
            row = sums + index * (self.width * tiles.BYTES)
            results: list[Vec] = []
            for v in range(-(-channels // f.lanes)):
                lane, count = v * f.lanes, min(f.lanes, channels - v * f.lanes)
                values = [f.load(row, v * f.target.bytes)]
                for operand, access in zip(operands, self.operands, strict=True):
                    offset = r * access.column + lane * access.channel
                    values.append(read(f, operand, offset, access.channel, count, access.element))
                results += evaluate(self.epilogue, values)
            write_row(f, results, y, r * self.y.column, self.y.channel, channels, self.y.element)

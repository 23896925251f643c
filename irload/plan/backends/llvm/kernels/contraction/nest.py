"""The loop nest of contractions: blocks of data × panels of weights × units of a block."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import field, replace
from math import prod
from typing import Any, ClassVar

from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.axes import ANY, any_strides
from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Int, Pointer
from irload.plan.backends.llvm.dot import Dot
from irload.plan.backends.llvm.elements import F32, SIZES
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import offset, repeat
from irload.plan.ir.expression import Expression
from irload.record import record

SHARE_PANELS, SHARE_UNITS = "panels", "rows"
"""Threads divide the panels of the weights, or the units of data."""


@record()
class Access:
    """The strides of a tensor in bytes along each outer axis, columns and channels, and the type of its elements."""

    outer: tuple[int, ...]
    column: int
    channel: int = 0
    element: str = F32

    @property
    def key(self) -> Access:
        """The access in the key of code, which reads all strides except 0 and the stride of contiguous channels."""
        channel = self.channel if self.channel in (0, SIZES[self.element]) else ANY
        return replace(self, outer=any_strides(self.outer), column=ANY if self.column else 0, channel=channel)

    def address(self, pointer: Pointer, outer: Sequence[AnyInt], column: AnyInt, channel: AnyInt) -> Pointer:
        """The address of an element."""
        return pointer + offset((*self.outer, self.column, self.channel), (*outer, column, channel))


@record()
class Turn:
    """An iteration of the innermost loop of the nest: one unit of data by one panel of weights."""

    pointers: list[Pointer]
    sizes: Any
    """The numbers of the kernel."""
    start: Int
    """The first unit of the block."""
    unit: Int
    panel: Int
    part: AnyInt
    final: Bool | None
    """An i1, true in the last panel of the last block. None unless the kernel `reads_beyond`."""


@record()
class Contraction(Kernel):
    """y[outer…, column, channel] = epilogue(Σ a · b, operands). Pointers: a, packed b, y, then the operands.

    A unit is a tile of `rows` neighbouring columns, or a few strips of `rows` columns. A panel is a group of channels
    with its weights. All units of a block use one panel before the next, so that the panel stays in the L1 cache and
    the data of the block in L2.

    `weights`: strides of the weights along the outer axes, in packed matrices. `shared`: SHARE_PANELS or SHARE_UNITS.
    """

    dot: Dot
    outer: tuple[int, ...]
    columns: int
    channels: int
    x: Access
    y: Access
    operands: tuple[Access, ...]
    epilogue: Expression
    weights: tuple[int, ...]
    rows: int
    shared: str = field(default=SHARE_UNITS, kw_only=True)

    reads_beyond: ClassVar[bool] = False
    """True if the last units prefetch the weights of the next kernel."""

    @property
    def instruction(self) -> Dot:
        return self.dot

    @property
    @abstractmethod
    def units(self) -> int:
        """The number of units of data."""

    @property
    @abstractmethod
    def panels(self) -> int:
        """The number of panels of one matrix of weights."""

    @property
    @abstractmethod
    def packed_channels(self) -> int:
        """The number of channels of a panel of packed weights."""

    @property
    @abstractmethod
    def matrix_bytes(self) -> int:
        """The bytes of one packed matrix of weights."""

    @property
    def parts(self) -> int:
        """The number of parts of the sum. All units of a block compute one part before the next."""
        return 1

    @property
    def count(self) -> int:
        return self.units if self.shared == SHARE_UNITS else self.panels

    @property
    def weight_bytes(self) -> int:
        """The bytes of all packed weights."""
        return self.matrix_bytes * prod(size for size, stride in zip(self.outer, self.weights, strict=True) if stride)

    def write(self, f: Function) -> None:
        arguments = Arguments(f)
        pointers, sizes = arguments.pointers(3 + len(self.operands)), self._read(arguments)
        begin, end, first, last = f["begin"], f["end"], 0, sizes.panels
        if self.shared == SHARE_PANELS:
            begin, end, first, last = 0, sizes.units, f["begin"], f["end"]
        size = self._block_size(f, begin, end, sizes)

        self._prepare(f, sizes)
        for start in f.range(begin, end, size):
            stop = f.minimum(start + size, end)
            ends = stop >= end if self.reads_beyond else None
            for k in repeat(f, 0, self.parts):
                for p in f.range(first, last):
                    final = None if ends is None else ends & f.equal(p + 1, last)
                    self._begin_panel(f, pointers, sizes, p, k)
                    for u in f.range(start, stop):
                        self._write_unit(f, Turn(pointers, sizes, start, u, p, k, final))
        self._complete(f)

    @abstractmethod
    def _read(self, arguments: Arguments) -> Any:
        """Read the numbers of the kernel, among them `units` and `panels`. Other methods get them as `sizes`."""

    @abstractmethod
    def _block_size(self, f: Function, begin: AnyInt, end: AnyInt, sizes: Any) -> AnyInt:
        """The number of units per block, for a thread with the units begin…end−1."""

    @abstractmethod
    def _write_unit(self, f: Function, turn: Turn) -> None:
        """Emit the code of one unit and one panel."""

    def _begin_panel(self, f: Function, pointers: Sequence[Pointer], sizes: Any, panel: Int, part: AnyInt) -> None:
        """Emit the code that runs before the units of a block use a panel, or a part of it."""

    def _prepare(self, f: Function, sizes: Any) -> None:
        """Emit the code that a thread runs before its first block."""

    def _complete(self, f: Function) -> None:
        """Emit the code that a thread runs after its last block."""

"""What a kernel is: a description that is complete and comparable, the code that it writes, and how work is split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

from irload.core.tensor import Array
from irload.plan.backends.llvm.builder import Function, Module
from irload.plan.backends.llvm.target import Target
from irload.record import record

PARAMETERS = ("ptr arguments", "i64 begin", "i64 end", "ptr scratch", "ptr ahead")
"""Of every `kernel`: a table of pointers, the units of work to do, memory of the thread's own, weights to ask for."""

SHARED_CYCLES = 5000
"""The cycles below which one thread runs a kernel alone: others would cost more than they give (about 1 µs)."""


@record()
class Streamed:
    """Weights that a kernel reads from the first to the last: `nbytes` behind one of its pointers.

    `parts`: what threads take parts of; each reads all where that is 1.
    """

    pointer: int
    nbytes: int
    parts: int


@record()
class Kernel(ABC):
    """A kernel for one shape. Its fields, which are all that its code depends on, are its key in the cache.

    The work is `count` units that may run in any order on any thread.
    """

    prepares: ClassVar[bool] = False
    """True for kernels that only make the data of the next one ready."""

    @property
    def why(self) -> str:
        """What explanations say of it."""
        return "compiled"

    @property
    def code(self) -> Kernel:
        """The kernel whose code it runs: the same for all that differ only in what `numbers` say, itself by default."""
        return self

    @property
    def numbers(self) -> tuple[int, ...]:
        """What the code reads behind its pointers, as 64-bit integers, since it is written for any of them."""
        return ()

    @property
    @abstractmethod
    def count(self) -> int:
        """The units of work."""

    @property
    @abstractmethod
    def cycles(self) -> float:
        """An estimate of the processor's cycles for all units."""

    @property
    def scratch(self) -> int:
        """The bytes of memory that each thread needs for itself."""
        return 0

    @property
    def asks(self) -> int:
        """The bytes of weights that it asks for ahead, from `ahead` on, before it ends."""
        return 0

    @property
    def streamed(self) -> Streamed | None:
        """The weights that it is worth to ask for before it begins."""
        return None

    @abstractmethod
    def write(self, function: Function) -> None:
        """Write the body of `kernel`, for the units begin…end."""

    def text(self, target: Target) -> str:
        """The module, in LLVM's language."""
        module = Module(target)
        self.write(module.function("kernel", PARAMETERS, internal=False))
        return module.text()


@record()
class Standalone(Kernel):
    """A kernel that no table holds: who calls it says what to do."""

    @property
    def count(self) -> int:
        return 1

    @property
    def cycles(self) -> float:
        return 0


@record()
class Temporary:
    """Memory of the plan that one step's kernels share, `offset` bytes into it."""

    offset: int


@record()
class Launch:
    """A kernel with the pointers that it gets. `keep`: arrays that must live as long."""

    kernel: Kernel
    pointers: Sequence[int | Temporary]
    keep: Sequence[Array] = field(default=())

    @property
    def is_shared(self) -> bool:
        """True where several threads work at it."""
        return self.kernel.count > 1 and self.kernel.cycles >= SHARED_CYCLES


def address(array: Array) -> int:
    """Where the first element of an array lies."""
    return array.__array_interface__["data"][0]


def element_strides(array: Array) -> tuple[int, ...]:
    """The strides of an array, counted in elements. Raises ValueError where they are no whole numbers."""
    if any(s % array.itemsize for s in array.strides):
        raise ValueError(f"strides of {array.strides} bytes for elements of {array.itemsize}")
    return tuple(s // array.itemsize for s in array.strides)

"""The base class of kernels: a comparable description, the code it generates, and how its work is divided."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar

from irload.core.tensor import Array
from irload.plan.backends.llvm.arguments import unknown
from irload.plan.backends.llvm.builder import Function, Module
from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.target import Target
from irload.record import record

if TYPE_CHECKING:
    from irload.plan.backends.llvm.dot import Dot

PARAMETERS = ("ptr arguments", "i64 begin", "i64 end", "ptr scratch", "ptr ahead")
"""Parameters of the function `kernel` of every kernel: a table of pointers and numbers, the range of units, scratch
memory, weights to prefetch.
"""


@record()
class Streamed:
    """Weights that a kernel streams: `nbytes` bytes at the pointer with index `pointer`.

    `parts`: the number of parts that are divided among threads. With 1, each thread reads all weights. `ahead`: bytes
    of weights of a following kernel, or of these, that the kernel prefetches from the address `ahead` on.
    """

    pointer: int
    nbytes: int
    parts: int
    ahead: int = 0


@record()
class Kernel(ABC):
    """A kernel. Its fields determine its code completely; their repr is the key in the cache.

    The work consists of `count` units, which may run in any order on any thread.
    """

    optimized: ClassVar[bool] = False
    """True if LLVM's optimization passes should run on the code. Vector kernels are faster without them."""
    prepares: ClassVar[bool] = False
    """True for kernels that only prepare data for the next kernel."""

    @property
    def name(self) -> str:
        """The name in explanations."""
        return type(self).__name__

    @property
    def instruction(self) -> Dot | None:
        """The instruction by which the kernel multiplies; None for FMA, or if it computes no products."""
        return None

    @property
    def why(self) -> str:
        """The reason for its selection, for explanations."""
        return "compiled" if self.instruction is None else self.instruction.why

    @property
    def arithmetic(self) -> str:
        """The type in which the kernel multiplies: f32, bf16 or int8."""
        return F32 if self.instruction is None else self.instruction.arithmetic

    @property
    def code(self) -> Kernel:
        """The kernel that identifies the code: equal for all kernels that differ only in `numbers`.

        Integers that the code reads are ANY.
        """
        return self

    @property
    def numbers(self) -> tuple[int, ...]:
        """Run-time arguments, as 64-bit integers after the pointers: by default, all that are ANY in `code`."""
        return tuple(unknown(self, self.code))

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of units of work."""

    @property
    @abstractmethod
    def cycles(self) -> float:
        """An estimate of the cycles for all units."""

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory per thread."""
        return 0

    @property
    def streamed(self) -> Streamed | None:
        """The weights that the kernel streams, which an earlier kernel should prefetch; None for other kernels."""
        return None

    @abstractmethod
    def write(self, f: Function) -> None:
        """Generate the body of `kernel` for the units begin…end−1."""

    def text(self, target: Target) -> str:
        """The module as LLVM IR."""
        module = Module(target, optimized=self.optimized)
        self.write(module.function("kernel", PARAMETERS, internal=False))
        return module.text()


@record()
class Standalone(Kernel):
    """A kernel outside any table; its caller passes the range of units."""

    @property
    def count(self) -> int:
        return 1

    @property
    def cycles(self) -> float:
        return 0


@record()
class Temporary:
    """Temporary memory that the kernels of one step share, `offset` bytes from its start."""

    offset: int


@record()
class Launch:
    """A kernel and the values of its pointers. `keep`: arrays that must outlive it."""

    kernel: Kernel
    pointers: Sequence[int | Temporary]
    keep: Sequence[Array] = field(default=())


def address(array: Array) -> int:
    """The address of the first element of an array."""
    return array.__array_interface__["data"][0]

"""The contract of compiled back ends in addition to base.py: for the model cache, profiles and `show_config`.

A back end that generates code for this machine provides three objects. Its provider is listed in registry.py and is
imported early, so it imports no kernels. The provider returns a `CompiledBackend`, whose methods import kernels when
they are called. The back end compiles `StorableExecutable`s. A later process restores them from the result of
`stored`, without the program and without importing kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from irload.plan.backends.base import Backend, Executable
from irload.record import record

if TYPE_CHECKING:
    from irload.core.tensor import Array
    from irload.options import Options
    from irload.safety.cache_store import CacheStore

__all__ = [
    "CompiledBackend",
    "NotStorable",
    "Peaks",
    "Provider",
    "RestoredExecutable",
    "Runnable",
    "StorableExecutable",
    "StoredExecutable",
    "StoredInvalid",
]


@record()
class Peaks:
    """Peak rates of the machine, per second.

    `flops`: floating-point operations in f32; `nbytes`: bytes read or written; `bf16`, `int8`: operations of products
    in these types, 0 if the target does not compute them.
    """

    flops: float
    nbytes: float
    bf16: float
    int8: float

    def of(self, arithmetic: str) -> float:
        """The peak of products in f32, bf16 or int8."""
        return {"f32": self.flops, "bf16": self.bf16, "int8": self.int8}[arithmetic]


class NotStorable(Exception):
    """An executable uses memory that a file cannot represent."""


class StoredInvalid(Exception):
    """Stored code that the back end cannot load."""


@record(eq=False)
class StoredExecutable:
    """An executable as bytes.

    `code`: in a private format of the back end, independent of addresses. `constants`: the read-only data in
    consecutive pieces, most of which are views of the plan's memory. `nbytes`: the total size of the pieces.
    """

    code: bytes
    constants: Iterable[bytes | memoryview]
    nbytes: int


@runtime_checkable
class StorableExecutable(Executable, Protocol):
    """An executable that later processes can run without planning."""

    def stored(self, arena: Array) -> StoredExecutable:
        """Return the executable as bytes; `arena` is the memory of all values. Raises NotStorable."""
        ...


class Runnable(Protocol):
    """A restored executable, bound to memory. Runs one inference at a time."""

    def run(self, context: Any) -> None:
        """Run all kernels, like `Executable.run`."""
        ...


class RestoredExecutable(Protocol):
    """The loaded code of a stored executable, shared by any number of runnables."""

    def bind(self, arena: Array, constants: Array, threads: int) -> Runnable:
        """Bind the code to an arena and to constants, which have the same layout as when the code was stored.

        Both are arrays of bytes. Allocates working memory.
        """
        ...


@runtime_checkable
class CompiledBackend(Backend, Protocol):
    """A back end that generates code for this machine."""

    @property
    def identity(self) -> str:
        """The versions of the code generator and the target. Cache keys contain it in addition to irload's version."""
        ...

    @property
    def precision(self) -> str:
        """The precision of products: f32 or bf16."""
        ...

    def peaks(self, threads: int) -> Peaks:
        """Return the peak rates of this machine, which are measured once and stored in the user's cache."""
        ...

    def restore(self, code: bytes) -> RestoredExecutable:
        """Load the code of a stored executable. Raises StoredInvalid, or OSError if code cannot be executed."""
        ...


class Provider(Protocol):
    """Creates a compiled back end, and describes it without importing its modules."""

    def backend(self, options: Options) -> CompiledBackend | None:
        """Return the back end for these options; None if they exclude it or this machine does not support it.

        Raises Unsupported if the options require compiled kernels, or a precision, that are not available on this
        machine. Raises InputInvalid if the options contradict environment variables.
        """
        ...

    def status(self) -> str:
        """Return one line about the compiler and its target, or why it is unavailable; for `show_config`."""
        ...

    def stores(self) -> Sequence[CacheStore]:
        """Return the files of the back end in the user's cache."""
        ...

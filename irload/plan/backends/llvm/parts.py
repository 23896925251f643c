"""Parts of tables of kernels: the launches of steps that differ only in pointers.

A table has a record for each launch of each step: consecutive words with the properties of the kernel, then its
arguments. A word is the sum of a constant, a number of the selection at a shape, and an address.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.compile_queue import CompileQueue
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary
from irload.plan.backends.llvm.library import library
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.building import Build
from irload.record import record
from irload.system.machine import thread_count

PROPERTIES = 5
"""The number of properties at the start of a record: the address of the code, the units of work, the bytes of scratch
memory per thread, the cycles that decide whether threads share the kernel, and the operations of the step.
"""

NOWHERE, TEMPORARY, VALUES = range(3)
"""Indices of addresses: the address 0, temporary memory, and from `VALUES` on the values by their numbers."""
TEMPORARY_BYTES = 1
"""The index of the size of temporary memory among the words of a selection. Word 0 is 0."""


class Words(list[int]):
    """The numbers of a selection at one shape, and the `arrays` whose addresses are among them."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(numbers)
        self.arrays: list[Array] = []


class Term(NamedTuple):
    """One word of a launch: a constant plus a size plus an address.

    `addresses`: the index of the address. If `constants` or `addresses` is an array, it has one element per step.
    """

    constants: int | Array = 0
    size: Any = 0
    addresses: int | Array = NOWHERE


@record(eq=False)
class LaunchRecord:
    """The words of a launch, for all steps of a part.

    `kernel`: creates the kernel of the first step from the words. `code`: the kernel whose code runs at every shape,
    None if it differs between shapes. Its address replaces the first of the `terms`.
    """

    kernel: Build
    code: Kernel | None
    terms: Sequence[Term]


class TablePart:
    """The records of steps whose launches differ only in pointers.

    `positions`: of the steps in the segment; `keep`: arrays that must outlive the part; `codes`: of the kernels;
    `index`: returns the index of a size among the words; `is_traced`: the part is valid for other shapes, too.
    """

    def __init__(
        self,
        positions: Sequence[int],
        records: Sequence[LaunchRecord],
        keep: Sequence[Array],
        codes: Codes,
        index: Callable[[Any], int] = int,
        *,
        is_traced: bool = False,
    ) -> None:
        self.positions = positions
        self.kernels = [each.kernel for each in records]
        self.keep = keep
        self.is_traced = is_traced
        terms = [term for each in records for term in each.terms]
        count, width = len(positions), len(terms)
        sums = np.zeros((3, count, width), np.int64)
        sums[:, :] = np.array([_fixed(term, index) for term in terms], np.int64).reshape(width, 3).T[:, None]
        for k, term in enumerate(terms):
            if isinstance(term.constants, np.ndarray):
                sums[0, :, k] += term.constants
            if isinstance(term.addresses, np.ndarray):
                sums[2, :, k] = term.addresses
        firsts = np.cumsum([0, *(len(each.terms) for each in records)])[:-1]
        self._sums: Array = sums
        self._codes = codes
        unlinked = [(k, r.code) for k, r in zip(firsts, records, strict=True) if r.code is not None]
        self._unlinked: Sequence[tuple[int, Kernel]] = unlinked
        """Kernels whose code was not looked up yet: the index of the word for its address, and the kernel."""
        self.rows: Array = np.stack(
            [
                np.repeat(np.array(positions, np.int64), len(records)),
                (firsts + width * np.arange(count)[:, None]).ravel(),
            ]
        )
        """For each record the position of its step and the index of its first word."""

    @property
    def sums(self) -> Array:
        """For each word a constant, the index of its number, and the index of its address. Waits for the code."""
        for k, kernel in self._unlinked:
            self._sums[0, :, k] = self._codes.code(kernel).address
        self._unlinked = ()
        return self._sums.reshape(3, -1)


def _fixed(term: Term, index: Callable[[Any], int]) -> tuple[int, int, int]:
    """The constant, the index of the number and the index of the address, each 0 if it differs between steps."""
    constant = 0 if isinstance(term.constants, np.ndarray) else term.constants
    address = NOWHERE if isinstance(term.addresses, np.ndarray) else term.addresses
    if isinstance(term.size, int | np.integer):
        return constant + term.size, 0, address
    return constant, index(term.size), address


class Codes:
    """The code of kernels for a target, looked up in the library once.

    `threads`: the number of threads that share kernels. More threads may compile them: the default number.
    """

    def __init__(self, target: Target, threads: int) -> None:
        self._target = target
        self._threads = threads
        self.shares = threads > 1
        self._codes: dict[Kernel, Code] = {}
        self._queue: CompileQueue | None = None

    @contextmanager
    def in_parallel(self) -> Generator[Codes]:
        """Return the same codes for one thread, whose requests are compiled in several threads inside the block."""
        requesting = copy(self)
        threads = max(self._threads, thread_count(None))
        with CompileQueue(self._codes, self._target, threads) as queue:
            requesting._queue = queue  # noqa: SLF001
            yield requesting
            queue.complete()

    def request(self, kernel: Kernel) -> None:
        """Compile a kernel in another thread, if there is one."""
        if self._queue is not None:
            self._queue.add(kernel)

    def code(self, kernel: Kernel) -> Code:
        """The code of a kernel."""
        cached = self._codes.get(kernel)
        if cached is None:
            cached = self._codes[kernel] = library.code(kernel, self._target)
        return cached

    def cycles(self, kernel: Kernel) -> int:
        """The cycles of a kernel if threads may share it, else 0."""
        return int(kernel.cycles) if self.shares and kernel.count > 1 else 0

    def described(self, kernel: Kernel) -> list[int]:
        """The properties of a kernel, without the operations."""
        return [self.code(kernel.code).address, kernel.count, kernel.scratch, self.cycles(kernel)]

    def record(self, launch: Launch, flops: int, term: Callable[[Any], Term]) -> LaunchRecord:
        """The record of a launch without symbolic sizes. `term`: converts a pointer to a term."""
        kernel, code = launch.kernel, launch.kernel.code
        self.request(code)
        numbers = map(Term, (0, kernel.count, kernel.scratch, self.cycles(kernel), flops))
        terms = [*numbers, *map(term, launch.pointers), *map(Term, kernel.numbers)]
        return LaunchRecord(lambda words: kernel, code, terms)


def pointer_term(pointer: int | Temporary) -> Term:
    """The term for an address that does not change, or for temporary memory."""
    return Term(pointer.offset, 0, TEMPORARY) if isinstance(pointer, Temporary) else Term(pointer)

"""Runs a table of kernels: one call per thread and inference, in which the threads meet at barriers.

A barrier spins for some microseconds, then yields the processor, then sleeps: cheap if each thread has a processor,
harmless if not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from copy import copy
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm import intrinsics
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Module
from irload.plan.backends.llvm.kernel import Standalone
from irload.plan.backends.llvm.library import kernel_function, library
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.waiting import SpinMailbox, system_calls, wait_until
from irload.plan.memory.arena import aligned_bytes
from irload.plan.threads import ThreadCalls, pool
from irload.record import record
from irload.system.machine import exceeds_quota

ENTRY = 7
"""The i64 words of one entry: function, arguments, units, whether threads share it, whether they meet afterwards, the
weights that the first thread prefetches, and the bytes from there to the next thread's weights.
"""
FUNCTION, ARGUMENTS, UNITS, SHARED, MEETING, AHEAD, NEXT = range(ENTRY)
_SYSTEM = 64
"""The offset of the system's functions in the barrier, a cache line after its counter."""


@record()
class Runner(Standalone):
    """Runs a table of kernels. It has the parameters of `_call`.

    `sparing`: threads that wait sleep at once.
    """

    sparing: bool = False

    def text(self, target: Target) -> str:
        module = Module(target)
        parameters = ["ptr table", "i64 first", "i64 last", "i64 thread", "i64 threads", "ptr barrier", "ptr scratch"]
        self.write(module.function("kernel", parameters, internal=False))
        return module.text()

    def write(self, function: Function) -> None:
        f = function
        alone = f.equal(f["thread"], 0)

        def step(index: Int, carried: list[Any]) -> list[Any]:
            entry = f["table"] + index * (8 * ENTRY)
            kernel, arguments = f.load_pointer(entry), f.load_pointer(entry, 8)
            units, shared, meeting = (f.load_int(entry, 8 * k) for k in (2, 3, 4))
            is_shared = f.differ(shared, 0)
            ahead = f.load_pointer(entry, 40) + f.load_int(entry, 48) * f["thread"]

            def call(begin: AnyInt, end: AnyInt) -> None:
                intrinsics.call_address(f, kernel, [arguments, begin, end, f["scratch"], ahead])

            def part() -> None:
                begin, end = (units * thread // f["threads"] for thread in (f["thread"], f["thread"] + 1))
                f.when(begin < end, lambda: call(begin, end))

            f.when(is_shared, part, lambda: f.when(alone, lambda: call(0, units)))
            met = carried[0] + meeting
            together = f.differ(meeting, 0) & (f["threads"] > 1)
            f.when(together, lambda: _meet(f, met, sparing=self.sparing))
            return [met]

        f.loop(f["first"], f["last"], 1, step, [f.constant("0", "i64")])


def _meet(f: Function, times: AnyInt, *, sparing: bool) -> None:
    """Wait until all threads have arrived `times` times."""
    barrier = f["barrier"]
    intrinsics.add_shared(f, barrier, 1)
    wanted = times * f["threads"]
    wait_until(f, lambda: intrinsics.load_shared(f, barrier) >= wanted, barrier + _SYSTEM, sparing=sparing)


@record()
class _TableRun:
    """A run of some kernels of a table by several threads: `Together` of plan/threads.py."""

    table: Table
    first: int
    last: int

    def jobs(self, count: int) -> list[tuple[int, ...]]:
        return [self.table.job(self.first, self.last, thread, count) for thread in range(count)]

    def run(self, job: Sequence[int]) -> None:
        self.table.run_job(job)

    def mailbox(self) -> SpinMailbox:
        return SpinMailbox(self.table.target, sparing=self.table.sparing)

    def abandon(self) -> None:
        self.table.abandon()


TableCall = tuple[int, int, int]
"""The kernels first…last−1, and the number of parts of each; with 1 part a kernel runs in one call."""


def nothing() -> None:
    """The default check, a no-op."""


@record()
class Entry:
    """A kernel of a table: its code, arguments and division.

    `arguments`: `pointers` addresses, then numbers. `ahead`: the address of weights to prefetch and the bytes from
    there to the next thread's weights. `keep`: arrays that must outlive the entry.
    """

    code: Code
    arguments: Array
    pointers: int
    units: int
    is_shared: bool
    ahead: tuple[int, int] = (0, 0)
    keep: Sequence[Array] = ()


class Table:
    """Kernels that run in order. `scratch`: bytes of memory per thread.

    `temporary`: memory that the kernels of one step share.
    """

    def __init__(self, entries: Sequence[Entry], target: Target, threads: int, scratch: int, temporary: Array) -> None:
        self.entries = entries
        self.stride = -(-scratch // 4096) * 4096
        rows = np.zeros((max(len(entries), 1), ENTRY), np.int64)
        for k, entry in enumerate(entries):
            where = entry.arguments.ctypes.data
            rows[k] = entry.code.address, where, entry.units, entry.is_shared, 0, *entry.ahead
        self._set_up(rows, target, threads, aligned_bytes(max(self.stride * threads, 64)), temporary)

    def _set_up(self, rows: Array, target: Target, threads: int, scratch: Array, temporary: Array) -> None:
        """Set up a table of these rows over memory that they use. Whether threads meet after each is set here."""
        self.threads = threads
        self.target = target
        self.temporary = temporary
        self.sparing = exceeds_quota(threads)
        self._runner = library.code(Runner(self.sparing), target)
        self._call = _function(self._runner.address)
        self._barrier = aligned_bytes(128)
        self._counter = self._barrier.view(np.int64)
        self._counter[_SYSTEM // 8 : _SYSTEM // 8 + 2] = system_calls()
        self._set_rows(rows, scratch)

    def _set_rows(self, rows: Array, scratch: Array) -> None:
        self._scratch = scratch
        self.rows = rows
        shared = rows[:, SHARED]
        rows[:-1, MEETING] = shared[:-1] | shared[1:]
        self._before = [0, *accumulate(shared.tolist())]
        self._addresses = tuple(a.ctypes.data for a in (rows, self._barrier, self._scratch))

    @property
    def nbytes(self) -> int:
        """Bytes of scratch and temporary memory."""
        return self._scratch.size + self.temporary.size

    @property
    def memory(self) -> list[Array]:
        """All memory that kernels write to besides values, which tests fill."""
        return [self._scratch, self.temporary]

    def run(self, first: int, last: int) -> None:
        """Run the kernels first…last−1."""
        if first == last:
            return
        if self._before[first] == self._before[last]:
            self.run_job(self.job(first, last, 0, 1))
            return
        self._counter[0] = 0
        pool.run_together(_TableRun(self, first, last), self.threads)

    def run_calls(self, calls: Sequence[TableCall], check: Callable[[], object]) -> None:
        """Run kernels call by call. `check` is called before each call and between the parts of a kernel."""
        for first, last, parts in calls:
            check()
            if parts == 1:
                self.run(first, last)
                continue
            for index in range(first, last):
                self._run_in_parts(index, parts, check)

    def _run_in_parts(self, index: int, parts: int, check: Callable[[], object]) -> None:
        """Run one kernel in `parts` parts, at most its number of units."""
        code, arguments, units, is_shared, *_ = self.rows[index].tolist()
        call, scratch = kernel_function(code), self._addresses[2]
        threads = self.threads if is_shared else 1
        parts = min(parts, units)
        for begin, end in pairwise(units * k // parts for k in range(parts + 1)):
            check()
            shares = pairwise(begin + (end - begin) * k // threads for k in range(threads + 1))
            work: list[ThreadCalls] = [
                [(call, (arguments, low, high, scratch + k * self.stride, None))]
                for k, (low, high) in enumerate(shares)
                if low < high
            ]
            pool.run(work)

    def job(self, first: int, last: int, thread: int, threads: int) -> tuple[int, ...]:
        """The work of one thread: a function of machine code and its arguments."""
        rows, barrier, scratch = self._addresses
        return self._runner.address, rows, first, last, thread, threads, barrier, scratch + thread * self.stride

    def run_job(self, job: Sequence[int]) -> None:
        """Run it in the calling thread."""
        self._call(*job[1:])

    def abandon(self) -> None:
        """Let all threads pass all barriers; the results are invalid."""
        self._counter[0] = 1 << 62


class RowTable(Table):
    """A table of given rows over given memory, all of which `keep` keeps alive."""

    def __init__(  # pyright: ignore[reportMissingSuperCall]
        self, rows: Array, target: Target, threads: int, stride: int, scratch: Array, temporary: Array, keep: object
    ) -> None:
        self.entries = ()
        self.stride = stride
        self._keep = keep
        self._set_up(rows, target, threads, scratch, temporary)

    def like(self, rows: Array, stride: int, scratch: Array, keep: object) -> RowTable:
        """A table of other rows, which never runs while this one does."""
        other = copy(self)
        other.stride = stride
        other._keep = keep
        other._set_rows(rows, scratch)
        return other


def _function(address: int) -> Any:
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    return ctypes.CFUNCTYPE(None, pointer, number, number, number, number, pointer, pointer)(address)

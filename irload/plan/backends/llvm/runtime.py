"""Running a table of kernels: one call for each thread and inference, in which the threads meet at barriers.

A barrier spins for some microseconds, then offers the processor to other threads, then sleeps: so it costs little where
each thread has a processor of its own, and blocks nobody where it has not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.builder import Function, Module, Value
from irload.plan.backends.llvm.kernel import Standalone
from irload.plan.backends.llvm.library import library
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.waiting import SpinMailbox, read_shared, system_calls, wait_until
from irload.plan.memory.arena import aligned_bytes
from irload.plan.threads import pool
from irload.record import record

_ENTRY = 7
"""The i64 of one entry: function, arguments, units, whether threads share it, whether they meet afterwards, the weights
that the first thread asks for ahead, and the bytes from there to those of the next thread."""
_SYSTEM = 64
"""Where the barrier keeps the functions of the system, behind a cache line for its counter."""


@record()
class Runner(Standalone):
    """Walks a table of kernels. Its parameters are its own: they are those of `_call`."""

    def text(self, target: Target) -> str:
        module = Module(target)
        parameters = ["ptr table", "i64 first", "i64 last", "i64 thread", "i64 threads", "ptr barrier", "ptr scratch"]
        self.write(module.function("kernel", parameters, internal=False))
        return module.text()

    def write(self, function: Function) -> None:
        f = function
        alone = f.compare("eq", f["thread"], 0)
        zero = f.value("i64", "add i64 0, 0")

        def step(index: Value, carried: list[Value]) -> list[Value]:
            entry = f.at(f["table"], f.multiply(index, 8 * _ENTRY))
            kernel, arguments = f.load_pointer(entry), f.load_pointer(entry, 8)
            units, shared, meeting = (f.load_int(entry, 8 * k) for k in (2, 3, 4))
            is_shared = f.compare("ne", shared, 0)
            ahead = f.at(f.load_pointer(entry, 40), f.multiply(f.load_int(entry, 48), f["thread"]))

            def call(begin: object, end: object) -> None:
                f.emit(f"call void {kernel}(ptr {arguments}, i64 {begin}, i64 {end}, ptr {f['scratch']}, ptr {ahead})")

            def part() -> None:
                begin = f.value("i64", f"udiv i64 {f.multiply(units, f['thread'])}, {f['threads']}")
                after = f.multiply(units, f.add(f["thread"], 1))
                end = f.value("i64", f"udiv i64 {after}, {f['threads']}")
                f.when(f.compare("slt", begin, end), lambda: call(begin, end))

            f.when(is_shared, part, lambda: f.when(alone, lambda: call(0, units)))
            met = f.value("i64", f"add i64 {carried[0]}, {meeting}")
            together = f.both(f.compare("ne", meeting, 0), f.compare("sgt", f["threads"], 1))
            f.when(together, lambda: _meet(f, met))
            return [met]

        f.loop(f["first"], f["last"], 1, step, [zero])


def _meet(f: Function, times: Value) -> None:
    """Wait until all threads have come here, for the `times`-th time."""
    barrier = f["barrier"]
    f.value("i64", f"atomicrmw add ptr {barrier}, i64 1 acq_rel, align 8")
    wanted = f.multiply(times, f["threads"])
    wait_until(f, lambda: f.compare("sge", read_shared(f, barrier), wanted), f.at(barrier, _SYSTEM))


@dataclass(frozen=True, slots=True)
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
        return SpinMailbox(self.table.target)

    def abandon(self) -> None:
        self.table.abandon()


@record()
class Entry:
    """A kernel of a table: its code, what it is given, and how it is split.

    `arguments`: `pointers` addresses, then numbers; `ahead`: the address of weights to ask for, and the bytes from
    there to those of the next thread; `keep`: the arrays behind the addresses, which live as long.
    """

    code: Code
    arguments: Array
    pointers: int
    units: int
    is_shared: bool
    ahead: tuple[int, int] = (0, 0)
    keep: Sequence[Array] = ()


class Table:
    """Kernels that run one after the other. `scratch`: the bytes of memory that each thread has for itself.

    `temporary`: the memory that kernels of one step share.
    """

    def __init__(self, entries: Sequence[Entry], target: Target, threads: int, scratch: int, temporary: Array) -> None:
        self.entries = entries
        self.threads = threads
        self.target = target
        self.temporary = temporary
        self.stride = -(-scratch // 4096) * 4096
        self._runner = library.code(Runner(), target)
        self._call = _function(self._runner.address)
        self._scratch = aligned_bytes(max(self.stride * threads, 64))
        self._barrier = aligned_bytes(128)
        self._counter = self._barrier.view(np.int64)
        self._counter[_SYSTEM // 8 : _SYSTEM // 8 + 2] = system_calls()
        self._before = [0, *accumulate(entry.is_shared for entry in entries)]
        meeting = [a.is_shared or b.is_shared for a, b in pairwise(entries)] + [False]
        self._rows = np.zeros((max(len(entries), 1), _ENTRY), np.int64)
        for k, entry in enumerate(entries):
            where = entry.arguments.ctypes.data
            self._rows[k] = entry.code.address, where, entry.units, entry.is_shared, meeting[k], *entry.ahead
        self._addresses = tuple(a.ctypes.data for a in (self._rows, self._barrier, self._scratch))

    @property
    def nbytes(self) -> int:
        """The bytes of the threads' own memory and of what kernels share."""
        return self._scratch.size + self.temporary.size

    @property
    def memory(self) -> list[Array]:
        """All that kernels write to beside values: for tests, which fill it."""
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

    def job(self, first: int, last: int, thread: int, threads: int) -> tuple[int, ...]:
        """What one of the threads does: a function of machine code, and its arguments."""
        rows, barrier, scratch = self._addresses
        return self._runner.address, rows, first, last, thread, threads, barrier, scratch + thread * self.stride

    def run_job(self, job: Sequence[int]) -> None:
        """Do it in this thread."""
        self._call(*job[1:])

    def abandon(self) -> None:
        """Let all threads pass all barriers: what they make is of no use any more."""
        self._counter[0] = 1 << 62


def _function(address: int) -> Any:
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    return ctypes.CFUNCTYPE(None, pointer, number, number, number, number, pointer, pointer)(address)

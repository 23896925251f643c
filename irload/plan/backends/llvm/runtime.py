"""Runs a table of kernels: one call per inference of the leader's code, which shares kernels with helper threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from copy import copy
from itertools import accumulate, pairwise
from typing import Any

from irload.core.tensor import Array
from irload.plan.backends.llvm.leading import Runner
from irload.plan.backends.llvm.library import kernel_function, library
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.team import SHARED, KernelTeam
from irload.plan.memory.arena import aligned_bytes
from irload.plan.threads import ThreadCalls, pool
from irload.record import record
from irload.system.machine import exceeds_quota


@record()
class _TableRun:
    """A run of kernels of a table by several threads; implements `Together` of plan/threads.py."""

    table: KernelTable
    first: int
    last: int

    def team(self, threads: int) -> KernelTeam:
        return KernelTeam(self.table.target, threads)

    def run(self, team: KernelTeam, threads: int) -> None:
        self.table.lead(self.first, self.last, threads, team.address)


TableCall = tuple[int, int, int]
"""(first, last, parts): the kernels first…last−1, each divided into parts. With 1 part, all kernels run in one call."""


def working_memory(name: str, nbytes: int) -> Array:
    """New memory of at least `nbytes` for a table. `name`: its purpose, not used here."""
    return aligned_bytes(max(nbytes, 64))


class KernelTable:
    """Kernels that run in order: `rows` of ENTRY words. `keep`: an object that owns the memory of the rows.

    `scratch`: `stride` bytes for each thread; `temporary`: memory that the kernels of one step share.
    """

    def __init__(
        self, rows: Array, target: Target, threads: int, stride: int, scratch: Array, temporary: Array, keep: object
    ) -> None:
        self.threads = threads
        self.target = target
        self.temporary = temporary
        self._keep = keep
        self._runner = library.code(Runner(exceeds_quota(threads)), target)
        self._call = _function(self._runner.address)
        self.set_rows(rows)
        self.set_scratch(stride, scratch)

    def like(self, rows: Array, keep: object) -> KernelTable:
        """A table of other rows with the same temporary and scratch memory. The two must not run at the same time."""
        other = copy(self)
        other._keep = keep  # noqa: SLF001
        other.set_rows(rows)
        return other

    def set_rows(self, rows: Array) -> None:
        """Set the rows. Must also be called after SHARED words have changed."""
        self.rows = rows
        self._before = [0, *accumulate(rows[:, SHARED].tolist())]
        self._start = rows.ctypes.data

    def set_scratch(self, stride: int, scratch: Array) -> None:
        """Set the scratch memory, `stride` bytes for each thread."""
        self.stride = stride
        self.scratch = scratch
        self._scratch_start = scratch.ctypes.data

    @property
    def nbytes(self) -> int:
        """Bytes of scratch and temporary memory."""
        return self.scratch.size + self.temporary.size

    @property
    def memory(self) -> list[Array]:
        """All memory that kernels write to, except values. Tests fill it with NaN."""
        return [self.scratch, self.temporary]

    def run(self, first: int, last: int) -> None:
        """Run the kernels first…last−1."""
        if self._before[first] == self._before[last]:
            self.lead(first, last, 1, 0)
        else:
            pool.run_together(_TableRun(self, first, last), self.threads)

    def lead(self, first: int, last: int, threads: int, team: int) -> None:
        """Run these kernels in the calling thread, the leader of `threads` threads. `team`: the address of the team."""
        self._call(self._start, first, last, threads, team, self._scratch_start, self.stride)

    def run_calls(self, calls: Sequence[TableCall], context: Any) -> None:
        """Run kernels call by call. The time limit of `context` is checked before each call and between its parts."""
        check: Callable[[], object] = (lambda: None) if context is None else context.deadline.check
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
        call, scratch = kernel_function(code), self._scratch_start
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


def _function(address: int) -> Any:
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    return ctypes.CFUNCTYPE(None, pointer, number, number, number, pointer, pointer, number)(address)

"""Threads that share kernels: one leads, others help.

The leader walks a table of kernels and opens one after the other, under a new ticket each. The threads take its parts,
each first the part of its number, then any part not yet taken. So the leader waits only for parts that helpers have
begun: a helper that is late, or that the system has suspended between two kernels, delays nothing.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from irload.plan.backends.llvm import intrinsics
from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Int, Pointer
from irload.plan.backends.llvm.crowding import MOST, THREADS
from irload.plan.backends.llvm.kernel import Standalone
from irload.plan.backends.llvm.library import function
from irload.plan.backends.llvm.target import LINE, Target
from irload.plan.backends.llvm.waiting import Waits, system_calls, wake_all
from irload.plan.memory.arena import aligned_bytes
from irload.record import record

ENTRY = 6
"""The i64 words of one kernel of a table: function, arguments, units, whether threads share it, the weights that the
leader prefetches, and the bytes from there to the weights of the next thread.
"""
FUNCTION, ARGUMENTS, UNITS, SHARED, AHEAD, NEXT = range(ENTRY)

TICKET, KERNEL, PARTS, OPENED = 0, 16, 24, 16
"""Offsets of the ticket of the opened kernel, its entry, and the number of its parts.

Entry and parts of odd tickets are `OPENED` bytes further: the leader writes them before it opens the kernel, while
helpers may still read the previous ones.
"""
INVITED, LEAVING, SCRATCH, STRIDE, PATIENCE = (1 * LINE + k for k in (0, 16, 24, 32, 40))
"""Offsets of words for a whole run: the number of threads that take parts, leader included, whether helpers return to
Python, the scratch memory of the leader, the bytes to the next thread's, and the cycles of spinning before a sleep.
"""
DONE, DURATION, SUSPENDED = (2 * LINE + k for k in (0, 16, 24))
"""Offsets of the number of finished parts, the cycles that a helper took for one of them, and of the number of
helpers that the system suspended while the leader slept.
"""
CROWDING = 3 * LINE
"""The offset of the words of `crowding.py`."""
SYSTEM = 4 * LINE
"""The offset of the addresses of `system_calls`."""
CLAIMS = 5 * LINE
"""The offset of the last ticket for which each part was taken."""


@record()
class Work:
    """Writes the code by which one thread takes parts. `number`: of the thread, 0 for the leader."""

    f: Function
    team: Pointer
    number: AnyInt

    @property
    def waits(self) -> Waits:
        return Waits(self.f, self.team + SYSTEM)

    def opened(self, ticket: Int) -> Pointer:
        """The address from which to count `KERNEL` and `PARTS` of a ticket."""
        return self.team + ticket % 2 * OPENED

    def take(self, part: AnyInt, ticket: Int) -> Bool:
        """Take a part of the opened kernel; false if another thread has taken it.

        All parts of a kernel are taken before the next one is opened, so a thread with an old ticket cannot take any.
        It may read the entry and the number of parts of a later kernel. If it then takes a part that its old kernel
        lacks, the part stays free for later tickets, and the thread does not run it, as the old kernel is not open.
        """
        f, word = self.f, self.team + (CLAIMS + part * 8)
        taken, last = f.local(8), f.local(8)
        f.store_scalar(0, taken)

        def is_over() -> Bool:
            current = intrinsics.load_shared(f, word)
            f.store_scalar(current, last)
            return (current >= ticket) | f.differ(f.load_int(taken), 0)

        for _ in f.until(is_over):
            f.store_scalar(intrinsics.exchange(f, word, f.load_int(last), ticket).as_int(), taken)
        is_open = f.equal(intrinsics.load_shared(f, self.team, TICKET), ticket)
        return f.differ(f.load_int(taken), 0) & is_open

    def run(self, entry: Pointer, part: AnyInt, parts: AnyInt, scratch: Pointer) -> None:
        """Run one of the parts of a kernel."""
        f = self.f
        units = f.load_int(entry, 8 * UNITS)
        begin, end = (units * p // parts for p in (part, part + 1))
        ahead = f.load_pointer(entry, 8 * AHEAD) + f.load_int(entry, 8 * NEXT) * self.number
        call_kernel(f, entry, begin, end, scratch, ahead)


def call_kernel(f: Function, entry: Pointer, begin: AnyInt, end: AnyInt, scratch: Pointer, ahead: Pointer) -> None:
    """Run some units of a kernel."""
    code, arguments = f.load_pointer(entry, 8 * FUNCTION), f.load_pointer(entry, 8 * ARGUMENTS)
    intrinsics.call_address(f, code, [arguments, f.integer(begin), f.integer(end), scratch, ahead])


@record()
class Help(Standalone):
    """Take parts of the leader's kernels until the helpers are dismissed.

    Arguments: the team; begin: the number of the thread.
    """

    def write(self, function: Function) -> None:
        f, team, number = function, function["arguments"], function["begin"]
        work, seen, own = Work(f, team, number), f.local(8), f.local(16)
        waits = work.waits
        f.store_scalar(0, seen)
        f.store_scalar(waits.preemptions(), own, 8)
        for _ in f.until(lambda: f.differ(intrinsics.load_shared(f, team, LEAVING), 0)):
            # In this order: a thread that this ticket does not invite must not see an earlier invitation.
            ticket, invited = (intrinsics.load_shared(f, team, k) for k in (TICKET, INVITED))
            before = f.load_int(seen)
            with f.when(number < invited):
                with f.when(f.differ(ticket, before)):
                    f.store_scalar(ticket, seen)
                    opened = work.opened(ticket)
                    entry, parts = f.load_pointer(opened, KERNEL), f.load_int(opened, PARTS)
                    scratch = f.load_pointer(team, SCRATCH) + f.load_int(team, STRIDE) * number
                    for index in f.range(0, parts):
                        part = f.integer((number + index) % parts)
                        with f.when(work.take(part, ticket)):
                            start = intrinsics.cycles(f)
                            work.run(entry, part, parts, scratch)
                            f.store_scalar(intrinsics.cycles(f) - start, team, DURATION)
                            asleep = f.differ(intrinsics.load_shared(f, team, DONE + 8), 0)
                            with f.when(asleep):
                                known, now = f.load_int(own, 8), waits.preemptions()
                                with f.when(known < now):
                                    intrinsics.add_shared(f, team + SUSPENDED, 1)
                                f.store_scalar(now, own, 8)
                            intrinsics.add_shared(f, team + DONE, 1)
                            waits.wake(team + DONE)
                with f.otherwise():
                    waits.until(partial(f.differ, before), team + TICKET, f.load_int(team, PATIENCE))
            with f.otherwise():
                waits.sleep(team + INVITED, invited)


class Team:
    """The memory by which a leader and its helpers communicate: `Team` of plan/threads.py.

    Helpers may read old words of it at any time, but touch the memory of a table only for parts that they have taken.
    """

    def __init__(self, target: Target, threads: int) -> None:
        self.threads = threads
        self._memory = aligned_bytes(CLAIMS + 8 * threads)
        self._words = self._memory.view(np.int64)
        self._words[:] = 0
        self._words[SYSTEM // 8 : SYSTEM // 8 + 2] = system_calls()
        self._words[[(CROWDING + word) // 8 for word in (THREADS, MOST)]] = threads
        self.address = self._memory.ctypes.data
        self._help, self._code = function(Help(), target)
        """The code stays mapped for a thread that waits while the interpreter exits."""

    def help(self, number: int) -> None:
        """Take parts as thread `number`, from 1 on, until `dismiss`."""
        self._help(self.address, number, 0, None, None)

    def dismiss(self) -> None:
        """Let all helpers return, for good. Not while a thread leads."""
        words = self._words
        words[LEAVING // 8] = 1
        words[[PARTS // 8, (PARTS + OPENED) // 8]] = 0
        words[INVITED // 8] = self.threads + 1
        words[TICKET // 8] += 1
        wake_all(self.address + INVITED)
        wake_all(self.address + TICKET)

"""A team of threads that share kernels: one leader, several helpers.

The leader opens the kernels of a table in order, each with a new ticket number. Each thread first takes the part with
its index, then any part that no thread has taken. So the leader waits only for parts that helpers have begun. A helper
that is late, or that the system has suspended between two kernels, does not delay the others.
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
"""The number of i64 words per kernel of a table: address of the function, address of the arguments, units, whether
threads share it, the weights that the leader prefetches, and the bytes between the weights of consecutive threads.
"""
FUNCTION, ARGUMENTS, UNITS, SHARED, AHEAD, AHEAD_STRIDE = range(ENTRY)

TICKET, KERNEL, PARTS, OPENED = 0, 16, 24, 16
"""Offsets of the ticket of the opened kernel, its entry, and the number of its parts.

The entry and the parts of odd tickets are `OPENED` bytes further (double buffering): the leader writes them before it
opens the kernel, while helpers may still read the previous ones.
"""
INVITED, LEAVING, SCRATCH, STRIDE, PATIENCE = (1 * LINE + k for k in (0, 16, 24, 32, 40))
"""Offsets of words for a whole run: the number of threads that may take parts, including the leader; whether helpers
return to Python; the scratch memory of the leader; the bytes between the scratch memory of consecutive threads; the
cycles of spinning before a sleep.
"""
DONE, DURATION, SUSPENDED = (2 * LINE + k for k in (0, 16, 24))
"""Offsets of the number of finished parts; the cycles of a helper for one of them; the number of helpers that the
system suspended while the leader slept.
"""
CROWDING = 3 * LINE
"""The offset of the words of `crowding.py`."""
SYSTEM = 4 * LINE
"""The offset of the addresses of `system_calls`."""
CLAIMS = 5 * LINE
"""The offset of the last ticket for which each part was taken."""


@record()
class Work:
    """Emits the code by which a thread takes parts. `number`: the index of the thread, 0 for the leader."""

    f: Function
    team: Pointer
    number: AnyInt

    @property
    def waits(self) -> Waits:
        return Waits(self.f, self.team + SYSTEM)

    def opened(self, ticket: Int) -> Pointer:
        """The address to which `KERNEL` and `PARTS` are offsets, for a ticket."""
        return self.team + ticket % 2 * OPENED

    def take(self, part: AnyInt, ticket: Int) -> Bool:
        """Take a part of the opened kernel. False if another thread has taken it.

        All parts of a kernel are taken before the next kernel is opened, so a thread with an old ticket can take none.
        But it may read the entry and the number of parts of a later kernel. If it takes a part that its old kernel does
        not have, the part remains free for later tickets, and is not run, since the old kernel is not open.
        """
        f, word = self.f, self.team + (CLAIMS + part * 8)
        claimed, last = f.local(8), f.local(8)
        f.store_scalar(0, claimed)

        def is_over() -> Bool:
            current = intrinsics.load_shared(f, word)
            f.store_scalar(current, last)
            return (current >= ticket) | f.differ(f.load_int(claimed), 0)

        for _ in f.until(is_over):
            f.store_scalar(intrinsics.exchange(f, word, f.load_int(last), ticket).as_int(), claimed)
        is_open = f.equal(intrinsics.load_shared(f, self.team, TICKET), ticket)
        return f.differ(f.load_int(claimed), 0) & is_open

    def run(self, entry: Pointer, part: AnyInt, parts: AnyInt, scratch: Pointer) -> None:
        """Run one of the parts of a kernel."""
        f = self.f
        units = f.load_int(entry, 8 * UNITS)
        begin, end = (units * p // parts for p in (part, part + 1))
        ahead = f.load_pointer(entry, 8 * AHEAD) + f.load_int(entry, 8 * AHEAD_STRIDE) * self.number
        call_kernel(f, entry, begin, end, scratch, ahead)


def call_kernel(f: Function, entry: Pointer, begin: AnyInt, end: AnyInt, scratch: Pointer, ahead: Pointer) -> None:
    """Run some units of a kernel."""
    code, arguments = f.load_pointer(entry, 8 * FUNCTION), f.load_pointer(entry, 8 * ARGUMENTS)
    intrinsics.call_address(f, code, [arguments, f.integer(begin), f.integer(end), scratch, ahead])


@record()
class Help(Standalone):
    """The code of helpers: take parts of the leader's kernels until the helpers are dismissed.

    Arguments: the team. `begin`: the index of the thread.
    """

    def write(self, f: Function) -> None:
        team, number = f["arguments"], f["begin"]
        work, seen, suspensions = Work(f, team, number), f.local(8), f.local(16)
        waits = work.waits
        f.store_scalar(0, seen)
        f.store_scalar(waits.preemptions(), suspensions, 8)
        for _ in f.until(lambda: f.differ(intrinsics.load_shared(f, team, LEAVING), 0)):
            # The ticket is read first, so that INVITED is not older than the ticket.
            ticket, invited = (intrinsics.load_shared(f, team, k) for k in (TICKET, INVITED))
            previous = f.load_int(seen)
            with f.when(number < invited):
                with f.when(f.differ(ticket, previous)):
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
                                known, now = f.load_int(suspensions, 8), waits.preemptions()
                                with f.when(known < now):
                                    intrinsics.add_shared(f, team + SUSPENDED, 1)
                                f.store_scalar(now, suspensions, 8)
                            intrinsics.add_shared(f, team + DONE, 1)
                            waits.wake(team + DONE)
                with f.otherwise():
                    waits.until(partial(f.differ, previous), team + TICKET, f.load_int(team, PATIENCE))
            with f.otherwise():
                waits.sleep(team + INVITED, invited)


class KernelTeam:
    """The shared memory of a leader and its helpers; implements `Team` of plan/threads.py.

    Helpers may read outdated words of it at any time. They access the memory of a table only for parts that they have
    taken.
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
        """Keeps the code mapped, since a helper may wait in it while the interpreter exits."""

    def help(self, number: int) -> None:
        """Take parts as helper `number` (1, 2, …) until `dismiss`."""
        self._help(self.address, number, 0, None, None)

    def dismiss(self) -> None:
        """Let all helpers return permanently. Must not be called while a leader runs."""
        words = self._words
        words[LEAVING // 8] = 1
        words[[PARTS // 8, (PARTS + OPENED) // 8]] = 0
        words[INVITED // 8] = self.threads + 1
        words[TICKET // 8] += 1
        wake_all(self.address + INVITED)
        wake_all(self.address + TICKET)

"""Spin waits between threads: at barriers, and for the next job.

A thread that has finished its part spins for the next job before it sleeps: the system takes up to 0.1 ms to wake a
thread, and the GIL as long to change hands.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from irload.plan.backends.llvm import intrinsics
from irload.plan.backends.llvm.builder import AnyBool, Bool, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.kernel import Standalone
from irload.plan.backends.llvm.library import function
from irload.plan.backends.llvm.target import Target
from irload.plan.memory.arena import aligned_bytes
from irload.record import record
from irload.system.portable import c_library

SPINS = 1000
"""Iterations before a thread yields the processor."""
YIELDS = 1000
"""Iterations of yielding before it sleeps: half a millisecond, several times the shortest sleep.

A shorter time would let one thread's sleep delay the other, which then sleeps in turn, and so on.
"""
NAP = 50
"""Microseconds of each sleep."""
PATIENCE = SPINS + 2 * YIELDS
"""Iterations that a thread waits for a job: 0.4 ms on Sapphire Rapids, several times the gap between inferences."""

_STATE, _INTERRUPTED, _JOB, _DONE, _TAKEN, _SYSTEM = 0, 8, 64, 128, 136, 192
"""Offsets in a mailbox: state, interrupted, the job (a function and seven arguments), done, taken, system calls."""
_NBYTES = 256
_AWAY, _WAITING, _SUBMITTED = range(3)


def wait_until(f: Function, is_done: Callable[[], AnyBool], system: Pointer, *, sparing: bool = False) -> None:
    """Spin for some microseconds, then yield, then sleep. `system`: the addresses of `system_calls`.

    `sparing`: sleep at once. Under a CPU quota, spinning uses time that other threads need, and yielding returns
    immediately, as there are more processors than the quota grants.
    """
    patience = 0 if sparing else SPINS + YIELDS

    def wait(turn: Int, carried: list[Vec]) -> list[Vec]:
        pause(f, turn, system)
        sleep = f.load_pointer(system, 8)
        f.when(turn >= patience, lambda: intrinsics.call_address(f, sleep, [f.constant(str(NAP), "i32")], "i32"))
        return []

    f.loop_until(is_done, wait)


def pause(f: Function, turn: Int, system: Pointer) -> None:
    """Spin or yield once."""
    intrinsics.pause(f)
    offer = f.load_pointer(system)
    f.when(turn >= SPINS, lambda: intrinsics.call_address(f, offer, [], "i32"))


@cache
def system_calls() -> tuple[int, int]:
    """The addresses of sched_yield and usleep."""
    libc = c_library()
    found = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (libc.sched_yield, libc.usleep)]
    return found[0], found[1]


@record()
class ServeJobs(Standalone):
    """Wait for jobs and run them, until none has arrived for `patience` iterations or Python interrupts.

    Arguments: the mailbox.
    """

    patience: int

    def write(self, function: Function) -> None:
        f, mailbox = function, function["arguments"]
        turns, left = f.local(8), f.local(8)
        intrinsics.store_shared(f, _WAITING, mailbox, _STATE)
        f.store_scalar(0, left)

        def is_over() -> Bool:
            submitted = f.equal(intrinsics.load_shared(f, mailbox, _STATE), _SUBMITTED)
            interrupted = f.differ(intrinsics.load_shared(f, mailbox, _INTERRUPTED), 0)
            late = f.load_int(turns) >= self.patience
            return submitted | (interrupted | late)

        def turn(index: Int, _: list[Any]) -> None:
            pause(f, index, mailbox + _SYSTEM)
            f.store_scalar(index + 1, turns)

        def job(_: Int, __: list[Any]) -> None:
            f.store_scalar(0, turns)
            f.loop_until(is_over, turn)
            f.when(
                intrinsics.exchange(f, mailbox + _STATE, _WAITING, _AWAY),
                lambda: f.store_scalar(1, left),
                lambda: _run(f, mailbox),
            )

        f.loop_until(lambda: f.differ(f.load_int(left), 0), job)


@record()
class SubmitJob(Standalone):
    """Submit the job to the waiting thread, and record whether it was taken. Arguments: the mailbox."""

    def write(self, function: Function) -> None:
        f, mailbox = function, function["arguments"]
        taken = intrinsics.exchange(f, mailbox + _STATE, _WAITING, _SUBMITTED)
        f.store_scalar(taken.as_int(), mailbox, _TAKEN)


@record()
class AwaitJob(Standalone):
    """Wait until the job has finished, `sparing` or not. Arguments: the mailbox."""

    sparing: bool = False

    def write(self, function: Function) -> None:
        f, mailbox = function, function["arguments"]
        wait_until(
            f, lambda: f.differ(intrinsics.load_shared(f, mailbox, _DONE), 0), mailbox + _SYSTEM, sparing=self.sparing
        )


class SpinMailbox:
    """The mailbox of one thread, which spins for jobs: `Mailbox` of plan/threads.py. `sparing`: it does not spin."""

    def __init__(self, target: Target, patience: int = PATIENCE, *, sparing: bool = False) -> None:
        self._memory = aligned_bytes(_NBYTES)
        self._numbers = self._memory.view(np.int64)
        self._numbers[:] = 0
        self._numbers[_SYSTEM // 8 : _SYSTEM // 8 + 2] = system_calls()
        self._place = self._memory.ctypes.data
        self._serve, serving = function(ServeJobs(1 if sparing else patience), target)
        self._submit, submitting = function(SubmitJob(), target, keeps_lock=True)
        self._await, awaiting = function(AwaitJob(sparing), target)
        self._codes = serving, submitting, awaiting
        """Keeps the code alive for a thread that still waits when the interpreter exits."""

    def serve(self) -> None:
        """Wait for jobs and run them."""
        self._serve(self._place, 0, 0, None, None)

    def submit(self, job: Sequence[int]) -> bool:
        """Submit a job; False if the thread is not waiting."""
        numbers = self._numbers
        if numbers[_STATE // 8] != _WAITING:
            return False
        numbers[_JOB // 8 : _JOB // 8 + len(job)] = job
        numbers[_DONE // 8] = 0
        self._submit(self._place, 0, 0, None, None)
        return bool(numbers[_TAKEN // 8])

    def finish(self) -> None:
        """Wait until the job has finished."""
        if not self._numbers[_DONE // 8]:
            self._await(self._place, 0, 0, None, None)

    def interrupt(self, interrupted: bool) -> None:
        """Make the thread return to Python at once, or stop doing so."""
        self._numbers[_INTERRUPTED // 8] = interrupted


def _run(f: Function, mailbox: Pointer) -> None:
    """Run the job, mark it as finished, and wait again."""
    call = f.load_pointer(mailbox, _JOB)
    types = ("ptr", "i64", "i64", "i64", "i64", "ptr", "ptr")
    loaded = [
        (f.load_pointer if kind == "ptr" else f.load_int)(mailbox, _JOB + 8 * (k + 1)) for k, kind in enumerate(types)
    ]
    intrinsics.call_address(f, call, loaded)
    intrinsics.store_shared(f, _WAITING, mailbox, _STATE)
    intrinsics.store_shared(f, 1, mailbox, _DONE)

"""Spin waits between threads: at barriers, and for the next job.

A thread that has run its part spins for another one for a moment before it sleeps, and runs it at once: the system
takes up to a tenth of a millisecond to wake a thread, and Python's lock as long to change hands.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.kernel import Standalone
from irload.plan.backends.llvm.library import function
from irload.plan.backends.llvm.target import Target
from irload.plan.memory.arena import aligned_bytes
from irload.record import record

SPINS = 1000
"""Turns of waiting before a thread offers the processor to others."""
YIELDS = 1000
"""Turns that it then offers it, before it sleeps: half a millisecond, several times what a sleep takes at least.

Otherwise one sleep makes the other thread come late, which then sleeps in turn, and so on to the end of the inference.
"""
NAP = 50
"""The microseconds that it then sleeps each time."""
PATIENCE = SPINS + 2 * YIELDS
"""Turns that a thread waits for more to do, 0.4 ms on Sapphire Rapids: several times what lies between inferences."""

_STATE, _INTERRUPTED, _JOB, _DONE, _TAKEN, _SYSTEM = 0, 8, 64, 128, 136, 192
"""Where a mailbox holds its state, whether the thread is interrupted, the job (a function and its seven arguments),
whether it has been run and whether it was taken, and the functions of the system."""
_NBYTES = 256
_AWAY, _WAITING, _SUBMITTED = range(3)


def wait_until(f: Function, is_done: Callable[[], Value], system: Value) -> None:
    """Spin for some microseconds, then offer the processor to other threads, then sleep. `system`: what does so."""

    def wait(turn: Value, carried: list[Value]) -> list[Value]:
        pause(f, turn, system)
        sleep = f.load_pointer(system, 8)
        f.when(f.compare("sge", turn, SPINS + YIELDS), lambda: f.emit(f"call i32 {sleep}(i32 {NAP})"))
        return []

    f.loop_until(is_done, wait)


def pause(f: Function, turn: Value, system: Value) -> None:
    """One turn of waiting, without sleep."""
    f.emit("call void @llvm.x86.sse2.pause()")
    offer = f.load_pointer(system)
    f.when(f.compare("sge", turn, SPINS), lambda: f.emit(f"call i32 {offer}()"))


def read_shared(f: Function, pointer: Value, offset: int = 0) -> Value:
    """A number that another thread may be changing."""
    return f.value("i64", f"load atomic i64, ptr {f.at(pointer, offset)} acquire, align 8")


@cache
def system_calls() -> tuple[int, int]:
    """The addresses of sched_yield and usleep."""
    libc = ctypes.CDLL(None)
    found = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (libc.sched_yield, libc.usleep)]
    return found[0], found[1]


@record()
class ServeJobs(Standalone):
    """Wait for jobs, and run them, until none has come for `patience` turns or Python interrupts.

    Arguments: the mailbox.
    """

    patience: int

    def write(self, function: Function) -> None:
        f, mailbox = function, function["arguments"]
        turns, left = f.local(8), f.local(8)
        _write_shared(f, _WAITING, mailbox, _STATE)
        f.emit(f"store i64 0, ptr {left}")

        def is_over() -> Value:
            submitted = f.compare("eq", read_shared(f, mailbox, _STATE), _SUBMITTED)
            interrupted = f.compare("ne", read_shared(f, mailbox, _INTERRUPTED), 0)
            late = f.compare("sge", f.load_int(turns), self.patience)
            return f.value("i1", f"or i1 {submitted}, {f.value('i1', f'or i1 {interrupted}, {late}')}")

        def turn(index: Value, _: list[Value]) -> None:
            pause(f, index, f.at(mailbox, _SYSTEM))
            f.emit(f"store i64 {f.add(index, 1)}, ptr {turns}")

        def job(_: Value, __: list[Value]) -> None:
            f.emit(f"store i64 0, ptr {turns}")
            f.loop_until(is_over, turn)
            f.when(
                _change(f, mailbox, _WAITING, _AWAY),
                lambda: f.emit(f"store i64 1, ptr {left}"),
                lambda: _run(f, mailbox),
            )

        f.loop_until(lambda: f.compare("ne", f.load_int(left), 0), job)


@record()
class SubmitJob(Standalone):
    """Have the thread that waits run the job, and note whether one does. Arguments: the mailbox."""

    def write(self, function: Function) -> None:
        f, mailbox = function, function["arguments"]
        taken = f.value("i64", f"zext i1 {_change(f, mailbox, _WAITING, _SUBMITTED)} to i64")
        f.emit(f"store i64 {taken}, ptr {f.at(mailbox, _TAKEN)}")


@record()
class AwaitJob(Standalone):
    """Wait until the job has been run. Arguments: the mailbox."""

    def write(self, function: Function) -> None:
        f, mailbox = function, function["arguments"]
        wait_until(f, lambda: f.compare("ne", read_shared(f, mailbox, _DONE), 0), f.at(mailbox, _SYSTEM))


class SpinMailbox:
    """The mailbox of one thread, which spins for jobs: `Mailbox` of plan/threads.py."""

    def __init__(self, target: Target, patience: int = PATIENCE) -> None:
        self._memory = aligned_bytes(_NBYTES)
        self._numbers = self._memory.view(np.int64)
        self._numbers[:] = 0
        self._numbers[_SYSTEM // 8 : _SYSTEM // 8 + 2] = system_calls()
        self._place = self._memory.ctypes.data
        self._serve, serving = function(ServeJobs(patience), target)
        self._submit, submitting = function(SubmitJob(), target, keeps_lock=True)
        self._await, awaiting = function(AwaitJob(), target)
        self._codes = serving, submitting, awaiting
        """Which a thread that waits must not lose when the interpreter ends: all else that holds them goes then."""

    def serve(self) -> None:
        """Wait for jobs and run them."""
        self._serve(self._place, 0, 0, None, None)

    def submit(self, job: Sequence[int]) -> bool:
        """Have the thread run the job; False where it does not wait for one."""
        numbers = self._numbers
        if numbers[_STATE // 8] != _WAITING:
            return False
        numbers[_JOB // 8 : _JOB // 8 + len(job)] = job
        numbers[_DONE // 8] = 0
        self._submit(self._place, 0, 0, None, None)
        return bool(numbers[_TAKEN // 8])

    def finish(self) -> None:
        """Wait for the job's end."""
        if not self._numbers[_DONE // 8]:
            self._await(self._place, 0, 0, None, None)

    def interrupt(self, interrupted: bool) -> None:
        """Have the thread go back to Python at once, or no longer."""
        self._numbers[_INTERRUPTED // 8] = interrupted


def _run(f: Function, mailbox: Value) -> None:
    """Run the job, note that, and wait again."""
    call = f.load_pointer(mailbox, _JOB)
    types = ("ptr", "i64", "i64", "i64", "i64", "ptr", "ptr")
    loaded = [
        (f.load_pointer if kind == "ptr" else f.load_int)(mailbox, _JOB + 8 * (k + 1)) for k, kind in enumerate(types)
    ]
    f.emit(f"call void {call}({', '.join(f'{value.type} {value}' for value in loaded)})")
    _write_shared(f, _WAITING, mailbox, _STATE)
    _write_shared(f, 1, mailbox, _DONE)


def _change(f: Function, mailbox: Value, old: int, new: int) -> Value:
    """An i1: whether the state was the old one, and is now the new one."""
    kind = "{ i64, i1 }"
    place = f.at(mailbox, _STATE)
    both = f.value(kind, f"cmpxchg ptr {place}, i64 {old}, i64 {new} acq_rel acquire, align 8")
    return f.value("i1", f"extractvalue {kind} {both}, 1")


def _write_shared(f: Function, number: int, pointer: Value, offset: int) -> None:
    f.emit(f"store atomic i64 {number}, ptr {f.at(pointer, offset)} release, align 8")

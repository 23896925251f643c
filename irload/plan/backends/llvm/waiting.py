"""Waiting for other threads in machine code: at barriers, and for what another thread hands over.

A thread that has run its part waits for another one for a moment before it sleeps. What is handed over meanwhile it
runs at once: the system takes up to a tenth of a millisecond to wake it, and Python's lock as long to change hands.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.kernel import Standalone
from irload.plan.backends.llvm.library import library
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.target import Target
from irload.plan.memory.memory import aligned_bytes
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

_STATE, _CALLED, _JOB, _DONE, _TAKEN, _SYSTEM = 0, 8, 64, 128, 136, 192
"""Where a post keeps its state, whether Python calls, the function and seven arguments, whether they have been run and
whether they were taken, and the functions of the system."""
_NBYTES = 256
_AWAY, _STANDING, _HANDED = range(3)
JOB = 8
"""The numbers of a job: a function, and its arguments."""


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
class StandBy(Standalone):
    """Wait for jobs, and run them, until none has come for `patience` turns or Python calls. Arguments: a post."""

    patience: int

    def write(self, function: Function) -> None:
        f, post = function, function["arguments"]
        turns, left = f.local(8), f.local(8)
        _write_shared(f, _STANDING, post, _STATE)
        f.emit(f"store i64 0, ptr {left}")

        def is_over() -> Value:
            handed = f.compare("eq", read_shared(f, post, _STATE), _HANDED)
            called = f.compare("ne", read_shared(f, post, _CALLED), 0)
            tired = f.compare("sge", f.load_int(turns), self.patience)
            return f.value("i1", f"or i1 {handed}, {f.value('i1', f'or i1 {called}, {tired}')}")

        def turn(index: Value, _: list[Value]) -> None:
            pause(f, index, f.at(post, _SYSTEM))
            f.emit(f"store i64 {f.add(index, 1)}, ptr {turns}")

        def job(_: Value, __: list[Value]) -> None:
            f.emit(f"store i64 0, ptr {turns}")
            f.loop_until(is_over, turn)
            f.when(
                _change(f, post, _STANDING, _AWAY), lambda: f.emit(f"store i64 1, ptr {left}"), lambda: _run(f, post)
            )

        f.loop_until(lambda: f.compare("ne", f.load_int(left), 0), job)


@record()
class HandOver(Standalone):
    """Have whoever stands by run the job that a post holds, and note whether somebody does. Arguments: the post."""

    def write(self, function: Function) -> None:
        f, post = function, function["arguments"]
        taken = f.value("i64", f"zext i1 {_change(f, post, _STANDING, _HANDED)} to i64")
        f.emit(f"store i64 {taken}, ptr {f.at(post, _TAKEN)}")


@record()
class AwaitJob(Standalone):
    """Wait until the job of a post has been run. Arguments: the post."""

    def write(self, function: Function) -> None:
        f, post = function, function["arguments"]
        wait_until(f, lambda: f.compare("ne", read_shared(f, post, _DONE), 0), f.at(post, _SYSTEM))


class Post:
    """Where one thread stands by, as plan/threads.py asks for it."""

    def __init__(self, target: Target, patience: int = PATIENCE) -> None:
        self._memory = aligned_bytes(_NBYTES)
        self._numbers = self._memory.view(np.int64)
        self._numbers[:] = 0
        self._numbers[_SYSTEM // 8 : _SYSTEM // 8 + 2] = system_calls()
        self._place = self._memory.ctypes.data
        self._stand_by, self._hand_over, self._await_job, self._codes = _functions(target, patience)

    def stand_by(self) -> None:
        """Wait for jobs and run them."""
        self._stand_by(self._place, 0, 0, None, None)

    def hand_over(self, job: Sequence[int]) -> bool:
        """Have the thread run the job; False where it does not stand by."""
        numbers = self._numbers
        if numbers[_STATE // 8] != _STANDING:
            return False
        numbers[_JOB // 8 : _JOB // 8 + JOB] = job
        numbers[_DONE // 8] = 0
        self._hand_over(self._place, 0, 0, None, None)
        return bool(numbers[_TAKEN // 8])

    def finish(self) -> None:
        """Wait for the job's end."""
        if not self._numbers[_DONE // 8]:
            self._await_job(self._place, 0, 0, None, None)

    def call(self, called: bool) -> None:
        """Have the thread go back to Python at once, or no longer."""
        self._numbers[_CALLED // 8] = called


@cache
def _functions(target: Target, patience: int) -> tuple[Any, Any, Any, list[Code]]:
    """The three kernels as functions. The one that hands over keeps Python's lock, as it waits for nothing."""
    codes = [library.code(kernel, target) for kernel in (StandBy(patience), HandOver(), AwaitJob())]
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    signature = (None, pointer, number, number, pointer, pointer)
    free, kept = ctypes.CFUNCTYPE(*signature), ctypes.PYFUNCTYPE(*signature)
    return free(codes[0].address), kept(codes[1].address), free(codes[2].address), codes


def _run(f: Function, post: Value) -> None:
    """Run the job, say so, and stand by again."""
    call = f.load_pointer(post, _JOB)
    types = ("ptr", "i64", "i64", "i64", "i64", "ptr", "ptr")
    loaded = [
        (f.load_pointer if kind == "ptr" else f.load_int)(post, _JOB + 8 * (k + 1)) for k, kind in enumerate(types)
    ]
    f.emit(f"call void {call}({', '.join(f'{value.type} {value}' for value in loaded)})")
    _write_shared(f, _STANDING, post, _STATE)
    _write_shared(f, 1, post, _DONE)


def _change(f: Function, post: Value, old: int, new: int) -> Value:
    """An i1: whether the state was the old one, and is now the new one."""
    kind = "{ i64, i1 }"
    place = f.at(post, _STATE)
    both = f.value(kind, f"cmpxchg ptr {place}, i64 {old}, i64 {new} acq_rel acquire, align 8")
    return f.value("i1", f"extractvalue {kind} {both}, 1")


def _write_shared(f: Function, number: int, pointer: Value, offset: int) -> None:
    f.emit(f"store atomic i64 {number}, ptr {f.at(pointer, offset)} release, align 8")

"""Waits between threads: spin for a while, then sleep until another thread wakes them (futex)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

from irload.plan.backends.llvm import intrinsics
from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Int, Pointer
from irload.record import record
from irload.system.portable import c_library

SLEEPERS = 8
"""The offset of the number of sleeping threads from the word whose change they wait for."""
_FUTEX, _WAIT, _WAKE, _ALL = 202, 128, 129, (1 << 31) - 1
"""The number of the system call on x86-64, its private operations, and the maximum number of threads to wake."""
_THIS_THREAD, _INVOLUNTARY, _USAGE = 1, 136, 144
"""The argument RUSAGE_THREAD of getrusage, the offset of ru_nivcsw in its result, and the size of the result."""


@cache
def system_calls() -> tuple[int, int]:
    """The addresses of syscall and getrusage."""
    libc = c_library()
    addresses = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (libc.syscall, libc.getrusage)]
    return addresses[0], addresses[1]


def wake_all(word: int) -> None:
    """Wake all threads that sleep until the i64 at this address changes."""
    c_library().syscall(
        ctypes.c_long(_FUTEX), ctypes.c_void_p(word), ctypes.c_int(_WAKE), ctypes.c_int(_ALL), None, None, 0
    )


@record()
class Waits:
    """Emits waits and wake-ups. `system`: a pointer to the addresses of `system_calls`.

    The number of sleeping threads is stored after the word that they wait for. A thread changes the word before it
    loads this number. So either it sees a sleeping thread and wakes it, or the system call of that thread sees the
    change and returns at once.
    """

    f: Function
    system: Pointer

    def until(self, holds: Callable[[Int], Bool], word: Pointer, patience: AnyInt) -> None:
        """Wait until a condition on the word holds. Sleep after `patience` cycles of spinning."""
        f = self.f
        seen, start = f.local(8), intrinsics.cycles(f)

        def is_over() -> Bool:
            current = intrinsics.load_shared(f, word)
            f.store_scalar(current, seen)
            return holds(current)

        for _ in f.until(is_over):
            intrinsics.pause(f)
            with f.when(intrinsics.cycles(f) - start > patience):
                self.sleep(word, f.load_int(seen))

    def sleep(self, word: Pointer, seen: Int) -> None:
        """Sleep until another thread wakes this one, unless the word has changed. May return early."""
        intrinsics.add_shared(self.f, word + SLEEPERS, 1)
        self._futex(word, _WAIT, seen)
        intrinsics.add_shared(self.f, word + SLEEPERS, -1)

    def wake(self, word: Pointer) -> None:
        """Wake all sleepers, after a change of the word."""
        asleep = self.f.differ(intrinsics.load_shared(self.f, word, SLEEPERS), 0)
        with self.f.when(asleep):
            self._futex(word, _WAKE, self.f.integer(_ALL))

    def _futex(self, word: Pointer, operation: int, number: Int) -> None:
        f = self.f
        call, null = f.load_pointer(self.system), f.constant("null", "ptr")
        arguments = [_FUTEX, word, f.constant(str(operation), "i32"), number.cast("trunc", "i32"), null, null, 0]
        intrinsics.call_address(f, call, arguments, "i64")

    def preemptions(self) -> Int:
        """The number of involuntary context switches of this thread."""
        f, usage = self.f, self.f.local(_USAGE)
        f.store_scalar(0, usage, _INVOLUNTARY)
        call = f.load_pointer(self.system, 8)
        intrinsics.call_address(f, call, [f.constant(str(_THIS_THREAD), "i32"), usage], "i32")
        return f.load_int(usage, _INVOLUNTARY)

"""Launches → a table of kernels: resolved addresses, division among threads, weights to prefetch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.library import library
from irload.plan.backends.llvm.runtime import Entry, Table
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tuning import TOGETHER_CYCLES
from irload.plan.memory.arena import aligned_bytes

REACH = 2
"""How many of the following kernels are searched for weights to prefetch: a copy may precede their reader."""


def launched(launches: Sequence[Launch], target: Target, threads: int, temporary: int) -> Table:
    """The table of these launches. `temporary`: bytes that the kernels of one step share."""
    shared = [threads > 1 and launch.is_shared for launch in launches]
    cycles = sum(launch.kernel.cycles for launch, s in zip(launches, shared, strict=True) if s)
    together = cycles >= TOGETHER_CYCLES
    memory = aligned_bytes(max(temporary, 64))
    arguments = [_resolved(launch, memory.ctypes.data) for launch in launches]
    entries = [
        Entry(
            library.code(launch.kernel.code, target),
            arguments[k],
            len(launch.pointers),
            launch.kernel.count,
            shared[k] and together,
            _ahead(launches, arguments, k, threads),
            launch.keep,
        )
        for k, launch in enumerate(launches)
    ]
    scratch = max((launch.kernel.scratch for launch in launches), default=0)
    return Table(entries, target, threads, scratch, memory)


def _resolved(launch: Launch, temporary: int) -> Array:
    found = [temporary + p.offset if isinstance(p, Temporary) else p for p in launch.pointers]
    return np.array([*found, *launch.kernel.numbers] or [0], np.int64).view(np.uint64)


def _ahead(launches: Sequence[Launch], arguments: Sequence[Array], index: int, threads: int) -> tuple[int, int]:
    """The address of the weights to prefetch during a kernel, and the bytes from one thread's part to the next.

    These are the weights of the next kernel, or of this one if no constant weights of sufficient size follow soon.
    """
    asked = launches[index].kernel.asks
    if not asked:
        return 0, 0
    for k in (*range(index + 1, min(index + 1 + REACH, len(launches))), index):
        streamed = launches[k].kernel.streamed
        if streamed is None or (k > index and isinstance(launches[k].pointers[streamed.pointer], Temporary)):
            continue
        stride = streamed.nbytes // streamed.parts * (streamed.parts // threads)
        if streamed.nbytes - (threads - 1) * stride >= asked:
            return int(arguments[k][streamed.pointer]), stride
    raise AssertionError("a kernel prefetches more than its weights")

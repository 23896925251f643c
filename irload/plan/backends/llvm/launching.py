"""Launches → the table that runs them: addresses resolved, what threads share, which weights are asked for ahead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.library import library
from irload.plan.backends.llvm.runtime import Entry, Table
from irload.plan.backends.llvm.target import Target
from irload.plan.memory.arena import aligned_bytes

TOGETHER_CYCLES = 300_000
"""The cycles of a table's shared kernels below which one thread runs all: waking another takes up to 0.1 ms."""
REACH = 2
"""Kernels among which weights are looked for to be asked for ahead: one that copies data may come between."""


def launched(launches: Sequence[Launch], target: Target, threads: int, temporary: int) -> Table:
    """The table of these launches. `temporary`: the bytes that kernels of one step share."""
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
    return np.array([*found, *launch.kernel.numbers] or [0], np.uint64)


def _ahead(launches: Sequence[Launch], arguments: Sequence[Array], index: int, threads: int) -> tuple[int, int]:
    """Where the weights begin that are read behind a kernel, and the bytes from one thread's to the next one's.

    Its own where none follow soon that are constant and as large as what it asks for.
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
    raise AssertionError("a kernel asks for more than its own weights")

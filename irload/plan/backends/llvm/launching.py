"""Launches → a table of kernels: resolved addresses, division among threads, weights to prefetch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.library import library
from irload.plan.backends.llvm.runtime import Entry, Table
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tuning import REACH, TOGETHER_CYCLES
from irload.plan.memory.arena import aligned_bytes


def launched(launches: Sequence[Launch], target: Target, threads: int, temporary: int) -> Table:
    """The table of these launches. `temporary`: bytes that the kernels of one step share."""
    shared = [threads > 1 and launch.is_shared for launch in launches]
    cycles = sum(launch.kernel.cycles for launch, s in zip(launches, shared, strict=True) if s)
    together = cycles >= TOGETHER_CYCLES
    memory = aligned_bytes(max(temporary, 64))
    arguments = [_resolved(launch, memory.ctypes.data) for launch in launches]
    ahead = [(0, 0)] * len(launches)
    for k, reader, pointer, stride in weights_ahead(launches, threads):
        ahead[k] = int(arguments[reader][pointer]), stride
    entries = [
        Entry(
            library.code(launch.kernel.code, target),
            arguments[k],
            len(launch.pointers),
            launch.kernel.count,
            shared[k] and together,
            ahead[k],
            launch.keep,
        )
        for k, launch in enumerate(launches)
    ]
    scratch = max((launch.kernel.scratch for launch in launches), default=0)
    return Table(entries, target, threads, scratch, memory)


def _resolved(launch: Launch, temporary: int) -> Array:
    found = [temporary + p.offset if isinstance(p, Temporary) else p for p in launch.pointers]
    return np.array([*found, *launch.kernel.numbers] or [0], np.int64).view(np.uint64)


def weights_ahead(launches: Sequence[Launch | None], threads: int) -> Iterator[tuple[int, int, int, int]]:
    """The weights to prefetch during each kernel: the kernel, their reader, its pointer, and the bytes between threads.

    These are the weights of the next kernel, or of this one if no constant weights of sufficient size follow soon.
    """
    for index, launch in enumerate(launches):
        if launch is None or not launch.kernel.asks:
            continue
        for k in (*range(index + 1, min(index + 1 + REACH, len(launches))), index):
            reader = launches[k]
            streamed = None if reader is None else reader.kernel.streamed
            if reader is None or streamed is None:
                continue
            if k > index and isinstance(reader.pointers[streamed.pointer], Temporary):
                continue
            stride = streamed.nbytes // streamed.parts * (streamed.parts // threads)
            if streamed.nbytes - (threads - 1) * stride >= launch.kernel.asks:
                yield index, k, streamed.pointer, stride
                break
        else:
            raise AssertionError("a kernel prefetches more than its weights")

"""Runs a kernel immediately, outside any table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from irload.plan.backends.llvm.kernel import Kernel, address
from irload.plan.backends.llvm.library import function
from irload.plan.backends.llvm.target import Target, runnable
from irload.plan.memory.arena import aligned_bytes
from irload.plan.threads import pool


def prepare(kernel: Kernel, target: Target, arguments: Sequence[int], count: int, threads: int) -> None:
    """Run a kernel now over `count` units. `arguments`: its pointers, then its numbers.

    If this processor lacks the target's instructions, the kernel is compiled for those it has.
    """
    call, _code = function(kernel, runnable(target))
    table = np.array(arguments, np.int64)
    scratch = aligned_bytes(kernel.scratch * threads)
    parts = pairwise(count * k // threads for k in range(threads + 1))
    pool.run(
        [[(call, (address(table), *part, address(scratch) + k * kernel.scratch, None))] for k, part in enumerate(parts)]
    )

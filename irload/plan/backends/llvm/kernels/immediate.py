"""Running a kernel at once, outside any table."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from irload.plan.backends.llvm.kernel import Kernel, address
from irload.plan.backends.llvm.library import library
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.target import Target
from irload.plan.memory.memory import aligned_bytes
from irload.plan.threads import pool


def prepare(kernel: Kernel, target: Target, arguments: Sequence[int], count: int, threads: int) -> None:
    """Run a kernel now, over `count` units: pointers and numbers as they are."""
    call, _code = function(kernel, target)
    table = np.array(arguments, np.int64)
    scratch = aligned_bytes(kernel.scratch * threads)
    parts = pairwise(count * k // threads for k in range(threads + 1))
    pool.run(
        [[(call, (address(table), *part, address(scratch) + k * kernel.scratch, None))] for k, part in enumerate(parts)]
    )


@cache
def function(kernel: Kernel, target: Target) -> tuple[Callable[..., Any], Code]:
    """The code of a kernel as a function of its parameters, and what it lives in."""
    code = library.code(kernel, target)
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    return ctypes.CFUNCTYPE(None, pointer, number, number, pointer, pointer)(code.address), code

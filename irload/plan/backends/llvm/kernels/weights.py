"""Packs constant weights, stored as f16, f32 or i8, when they are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.elements import F16, F32
from irload.plan.backends.llvm.kernel import Kernel, address
from irload.plan.backends.llvm.kernels.packing import Pack
from irload.plan.backends.llvm.library import function
from irload.plan.backends.llvm.packing import Packing
from irload.plan.backends.llvm.target import Target, runnable
from irload.plan.backends.llvm.tuning import NUMPY_PACKED
from irload.plan.memory.arena import aligned_bytes
from irload.plan.threads import pool


def pack_weights(weights: Array, packing: Packing, target: Target, threads: int, taps: int = 1) -> Array:
    """Pack weights [group, column, sum…] of f16, f32, or i8 with one tap: words [group, …] as `packing` specifies.

    The sum is over all axes but the first two, in their order: `taps`, then the rows of the packing.
    """
    if weights.dtype == np.int8:
        words = _words(weights.reshape(*weights.shape[:2], -1), packing.word)
        return pack_weights(words, replace(packing, element=F32, depth=packing.depth // packing.word), target, threads)
    if weights.size <= NUMPY_PACKED:
        return packing.packed(weights, taps)
    arranged = packing.arranged(weights, taps)
    groups, columns, rows = arranged.shape
    packed, source = packing.empty(groups, rows, columns), F16 if arranged.dtype == np.float16 else F32
    prepare(Pack.of(packing, arranged.swapaxes(1, 2), source), [arranged, packed], target, threads)
    return packed


def _words(weights: Array, word: int) -> Array:
    """Words of `word` consecutive rows of weights [group, column, row] of i8, as f32 with the same bits."""
    *outer, rows = weights.shape
    padded = np.zeros((*outer, -(-rows // word) * word), np.int8)
    padded[..., :rows] = weights
    return padded.view(np.float32)


def prepare(
    kernel: Kernel, arguments: Sequence[Array | int], target: Target, threads: int, count: int | None = None
) -> None:
    """Run a kernel now, over all units or over `count` units.

    `arguments`: the pointers, then numbers that precede `kernel.numbers`. If this processor lacks the target's
    instructions, the kernel is compiled for this processor instead.
    """
    call, _code = function(kernel.code, runnable(target))
    pointers = [a if isinstance(a, int) else address(a) for a in arguments]
    table = np.array([*pointers, *kernel.numbers], np.int64)
    scratch, units = aligned_bytes(kernel.scratch * threads), kernel.count if count is None else count
    parts = pairwise(units * k // threads for k in range(threads + 1))
    pool.run(
        [[(call, (address(table), *part, address(scratch) + k * kernel.scratch, None))] for k, part in enumerate(parts)]
    )

"""Copies divided among threads, and views that merge axes if memory allows."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.tiles import cut
from irload.plan.backends.numpy.kernels.views import merged
from irload.plan.backends.numpy.measured import FEW_ELEMENTS


def copy(out: Array, source: Array, threads: int) -> Phases:
    """Return the phases of a copy. Threads share the first axis with at least one element per thread."""
    axis = next((k for k, n in enumerate(out.shape) if n >= threads), 0)
    if out.size < FEW_ELEMENTS or not out.ndim:
        return [[[(np.copyto, (out, source))]]]
    lead = (slice(None),) * axis
    return [
        [
            [(np.copyto, (out[(*lead, slice(a, b))], source[(*lead, slice(a, b))]))]
            for a, b in cut(out.shape[axis], threads)
        ]
    ]


def dense(array: Array, scratch: Scratch, phases: Phases) -> Array:
    """Return the array if it is contiguous, else a copy in scratch; the copy is appended to `phases`."""
    if array.flags.c_contiguous:
        return array
    packed = scratch.take(array.shape, array.dtype)
    phases += copy(packed, array, scratch.threads)
    return packed


def dense_target(out: Array, scratch: Scratch, spare: Array | None = None) -> tuple[Array, Phases]:
    """Return contiguous memory for a result, and the phases that copy it to `out`.

    The memory is `out` if that is contiguous, otherwise `spare` in the shape of `out`, otherwise scratch.
    """
    if out.flags.c_contiguous:
        return out, []
    packed = scratch.take(out.shape, out.dtype) if spare is None else spare
    return packed, copy(out, packed, scratch.threads)


def as_rows(a: Array) -> Array | None:
    """Return [rows, n] of an array whose leading axes merge without a copy."""
    return merged(a, -1, a.shape[-1])


def stack(a: Array, lead: tuple[int, ...], count: int) -> Array | None:
    """Return [count, rows, columns] of an array whose leading axes are `lead` and merge without a copy."""
    if a.shape[:-2] != lead:
        return None
    return merged(a, count, *a.shape[-2:])

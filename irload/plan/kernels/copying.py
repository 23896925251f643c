"""Copies cut for threads, and views that merge axes where memory allows."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.kernels.calls import Part
from irload.plan.kernels.tiles import cut


def copy(out: Array, source: Array, threads: int) -> list[list[Part]]:
    """A copy, cut along the first axis that is long enough."""
    axis = next((k for k, n in enumerate(out.shape) if n >= threads), 0)
    if out.size < 1 << 14 or not out.ndim:
        return [[[(np.copyto, (out, source))]]]
    lead = (slice(None),) * axis
    return [
        [
            [(np.copyto, (out[(*lead, slice(a, b))], source[(*lead, slice(a, b))]))]
            for a, b in cut(out.shape[axis], threads)
        ]
    ]


def as_rows(a: Array) -> Array | None:
    """[rows, n] of an array whose leading axes merge without a copy."""
    try:
        return np.reshape(a, (-1, a.shape[-1]), copy=False)
    except ValueError:
        return None


def stack(a: Array, lead: tuple[int, ...], count: int) -> Array | None:
    """[count, rows, columns] of an array whose leading axes are `lead` and merge without a copy."""
    if a.shape[:-2] != lead:
        return None
    try:
        return np.reshape(a, (count, *a.shape[-2:]), copy=False)
    except ValueError:
        return None

"""Gather: slices of an array selected by indices."""

from __future__ import annotations

import numpy as np

from irload.core.half import widened
from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.views import shaped


def take_shared(out: Array, data: Array, indices: Array, axis: int, shared: int) -> None:
    """Write the slices to `out`, as `take` does; data and indices share their first `shared` axes, at least one."""
    size, lead, before = data.shape[axis], int(np.prod(data.shape[:shared])), int(np.prod(data.shape[shared:axis]))
    indices = np.ascontiguousarray(indices)
    at = np.where(indices < 0, indices + size, indices)
    outside = (at < 0) | (at >= size)
    rows = lead, 1, at.size // lead, 1
    flat = shaped(np.ascontiguousarray(data), lead, before, size, data.size // (lead * before * size))
    taken = np.take_along_axis(flat, shaped(np.where(outside, 0, at), *rows), 2)
    kept = np.where(shaped(outside, *rows), data.dtype.type(0), taken)
    np.copyto(out, shaped(kept if out.dtype == data.dtype else widened(kept), *out.shape))


def take(out: Array, data: Array, indices: Array, axis: int) -> None:
    """Write the slices to `out`. Negative indices count from the end, indices out of range give zeros.

    `out` may be f32 for f16 data.
    """
    size = data.shape[axis]
    at = np.where(indices < 0, indices + size, indices)
    outside = (at < 0) | (at >= size)
    if out.flags.c_contiguous and out.dtype == data.dtype:
        np.take(data, at, axis, out, "clip")
    else:
        taken = np.take(data, at, axis, mode="clip")
        np.copyto(out, taken if out.dtype == data.dtype else widened(taken))
    if outside.any():
        out[(*(slice(None),) * axis, outside)] = 0

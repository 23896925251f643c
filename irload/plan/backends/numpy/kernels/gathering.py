"""Gather: slices of an array selected by indices."""

from __future__ import annotations

import numpy as np

from irload.core.half import widened
from irload.core.tensor import Array
from irload.ops.movement.gather import Gather7


def take_shared(out: Array, data: Array, indices: Array, axis: int, shared: int) -> None:
    """Write the slices to `out`, as `take` does; data and indices share their first `shared` axes, at least one."""
    np.copyto(out, Gather7(batch_dims=shared).compute(data, indices, np.array(axis)))


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
        slices = np.take(data, at, axis, mode="clip")
        np.copyto(out, slices if out.dtype == data.dtype else widened(slices))
    if outside.any():
        out[(*(slice(None),) * axis, outside)] = 0

"""Resampling along an axis."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.bind import Binder, Phases, binds
from irload.plan.kernels import resample as kernels
from irload.plan.kernels.copying import dense, dense_target
from irload.plan.kernels.views import frozen
from irload.plan.steps import Resample


@binds(Resample)
def resample(step: Resample, binder: Binder) -> tuple[str, Phases]:
    """By indices where every row of the matrix picks one element, else as matmul."""
    x, matrix = (binder.view(v) for v in step.inputs)
    out, axis = binder.view(step.output), step.axis
    if step.output.channels_last:
        x, out = np.moveaxis(x, 1, -1), np.moveaxis(out, 1, -1)
        axis = axis - 1 if axis > 1 else axis
        axis = out.ndim - 1 if step.axis == 1 else axis
    phases: Phases = []
    x = dense(x, binder.scratch, binder.threads, phases)
    target, store = dense_target(out, binder.scratch, binder.threads)
    picked = _picked(matrix)
    threads = binder.threads if out.size >= 1 << 14 else 1
    if picked is None:
        phases.append(kernels.resample(matrix, x, target, axis, threads))
    else:
        phases.append(kernels.take(picked, x, target, axis, threads))
    return "banded matmul" if picked is None else "by index", phases + store


def _picked(matrix: Array) -> Array | None:
    """The one element that each row of the matrix picks, None where it mixes several."""
    single = np.all(np.count_nonzero(matrix, axis=1) == 1) and np.all(matrix.max(axis=1) == 1)
    return frozen(matrix.argmax(axis=1)) if single else None

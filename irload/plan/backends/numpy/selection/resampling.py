"""Resampling along an axis."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.numpy.kernels import resample as kernels
from irload.plan.backends.numpy.kernels.copying import dense, dense_target
from irload.plan.backends.numpy.kernels.views import frozen
from irload.plan.backends.numpy.selection.selector import Binder, Phases, binds
from irload.plan.ir.steps import Resample


@binds(Resample)
def resample(step: Resample, binder: Binder) -> tuple[str, Phases]:
    """By indices where every position picks one element, else as matmul."""
    x, out, axis = binder.view(step.inputs[0]), binder.view(step.output), step.axis
    if step.output.channels_last:
        x, out = np.moveaxis(x, 1, -1), np.moveaxis(out, 1, -1)
        axis = axis - 1 if axis > 1 else axis
        axis = out.ndim - 1 if step.axis == 1 else axis
    phases: Phases = []
    x = dense(x, binder.scratch, binder.threads, phases)
    target, store = dense_target(out, binder.scratch, binder.threads)
    picked = frozen(step.index[:, 0].copy()) if step.index.shape[1] == 1 and np.all(step.weight == 1) else None
    threads = binder.threads if out.size >= 1 << 14 else 1
    if picked is None:
        phases.append(kernels.resample(step.index, step.weight, x, target, axis, threads))
    else:
        phases.append(kernels.take(picked, x, target, axis, threads))
    return "banded matmul" if picked is None else "by index", phases + store

"""Kernel selection for resampling along an axis."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.channels_last import is_channels_last
from irload.plan.backends.numpy.kernels import resample as kernels
from irload.plan.backends.numpy.kernels.calls import Phases
from irload.plan.backends.numpy.kernels.copying import dense, dense_target
from irload.plan.backends.numpy.kernels.views import frozen
from irload.plan.backends.numpy.measured import FEW_ELEMENTS
from irload.plan.backends.numpy.selection.selector import NumpySelector, Selected
from irload.plan.ir.steps import ResampleStep


def resample(step: ResampleStep, selector: NumpySelector) -> Selected:
    """Select a copy by indices if every output element equals one input element, otherwise a matmul."""
    x, out, axis = selector.array(step.inputs[0]), selector.array(step.output), step.axis
    if is_channels_last(selector.memory, step.output):
        x, out = np.moveaxis(x, 1, -1), np.moveaxis(out, 1, -1)
        axis = axis - 1 if axis > 1 else axis
        axis = out.ndim - 1 if step.axis == 1 else axis
    phases: Phases = []
    x = dense(x, selector.scratch, phases)
    target, store = dense_target(out, selector.scratch)
    picked = frozen(step.index[:, 0].copy()) if step.index.shape[1] == 1 and np.all(step.weight == 1) else None
    threads = selector.threads if out.size >= FEW_ELEMENTS else 1
    if picked is None:
        phases.append(kernels.resample(step.index, step.weight, x, target, axis, threads))
    else:
        phases.append(kernels.take(picked, x, target, axis, threads))
    return "banded matmul" if picked is None else "by index", phases + store

"""Views, copies and joins."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.numpy.kernels.calls import Part
from irload.plan.backends.numpy.kernels.copying import copy, dense
from irload.plan.backends.numpy.kernels.views import merged, shaped
from irload.plan.backends.numpy.selection.selector import Binder, Phases, binds
from irload.plan.ir.steps import Broadcast, Concat, Reshape, Slice, Transpose, ViewOp


@binds(Reshape, Transpose, Slice, Broadcast)
def moved(step: ViewOp, binder: Binder) -> tuple[str, Phases]:
    """Nothing where the output is a view, else a copy."""
    if binder.storage.is_view(step.output):
        return "view", []
    source, out = binder.view(step.inputs[0]), binder.view(step.output)
    try:
        return "copy", copy(out, step.look(source), binder.threads)
    except ValueError:  # a reshape of what does not lie so
        into = merged(out, *source.shape)
    if into is not None:
        return "copy", copy(into, source, binder.threads)
    phases: Phases = []
    packed = dense(source, binder.scratch, binder.threads, phases)
    return "copy", phases + copy(out, shaped(packed, *out.shape), binder.threads)


@binds(Concat)
def join(step: Concat, binder: Binder) -> tuple[str, Phases]:
    """The inputs that their makers did not write in place."""
    out, start = binder.view(step.output), 0
    part: Part = []
    for k, value in enumerate(step.inputs):
        index = (*(slice(None),) * step.axis, slice(start, start + value.shape[step.axis]))
        start += value.shape[step.axis]
        if (step, k) not in binder.storage.joined and value.size:
            part.append((np.copyto, (out[index], binder.view(value))))
    return "slices", [[part]]

"""Views, copies and concatenation."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.numpy.kernels.copying import copy, dense
from irload.plan.backends.numpy.kernels.views import merged, seen, shaped
from irload.plan.backends.numpy.selection.selector import Selected, Selector
from irload.plan.backends.numpy.tuning import Phases
from irload.plan.ir.steps import Concat, Relayout, ViewOp
from irload.plan.threads import Part


def view_or_copy(step: ViewOp, selector: Selector) -> Selected:
    """Nothing where the output is a view, else a copy."""
    if selector.memory.is_view(step.output):
        return "view", []
    source, out = selector.array(step.inputs[0]), selector.array(step.output)
    view = seen(source, step.view)
    if view is not None:
        return "copy", copy(out, view, selector.threads)
    into = merged(out, *source.shape)  # a reshape of what does not lie so
    if into is not None:
        return "copy", copy(into, source, selector.threads)
    phases: Phases = []
    packed = dense(source, selector.scratch, selector.threads, phases)
    return "copy", phases + copy(out, shaped(packed, *out.shape), selector.threads)


def concat(step: Concat, selector: Selector) -> Selected:
    """The inputs that do not lie in the output already."""
    out, start = selector.array(step.output), 0
    part: Part = []
    for value in step.inputs:
        index = (*(slice(None),) * step.axis, slice(start, start + value.shape[step.axis]))
        start += value.shape[step.axis]
        array, place = selector.array(value), out[index]
        if value.size and not (array.ctypes.data == place.ctypes.data and array.strides == place.strides):
            part.append((np.copyto, (place, array)))
    return "slices", [[part]]


def relayout(step: Relayout, selector: Selector) -> Selected:
    """A copy, between layouts that strides describe."""
    return "copy", copy(selector.array(step.output), selector.array(step.inputs[0]), selector.threads)

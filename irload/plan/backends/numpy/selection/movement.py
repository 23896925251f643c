"""Views, copies and concatenation."""

from __future__ import annotations

from irload.plan.backends.numpy.kernels.copying import copy, dense
from irload.plan.backends.numpy.kernels.gathering import take
from irload.plan.backends.numpy.kernels.views import merged, seen, shaped
from irload.plan.backends.numpy.selection.selector import Selected, Selector
from irload.plan.backends.numpy.tuning import Phases
from irload.plan.ir.steps import Concat, Gather, Relayout, ViewOp


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
    """The inputs, copied to their places in the output."""
    out, start = selector.array(step.output), 0
    phases: Phases = []
    for value in step.inputs:
        index = (*(slice(None),) * step.axis, slice(start, start + value.shape[step.axis]))
        start += value.shape[step.axis]
        written = selector.memory.source(value) is step.output  # by a back end that writes into slices
        phases += [] if written or not value.size else copy(out[index], selector.array(value), selector.threads)
    return "slices", phases


def gather(step: Gather, selector: Selector) -> Selected:
    """Slices picked by indices."""
    data, indices = (selector.array(v) for v in step.inputs)
    return "slices picked", [[[(take, (selector.array(step.output), data, indices, step.axis))]]]


def relayout(step: Relayout, selector: Selector) -> Selected:
    """A copy, between layouts that strides describe."""
    return "copy", copy(selector.array(step.output), selector.array(step.inputs[0]), selector.threads)

"""Kernel selection for views, copies, concatenation and Gather."""

from __future__ import annotations

from irload.plan.backends.numpy.kernels.calls import Phases
from irload.plan.backends.numpy.kernels.compressed import take_widened
from irload.plan.backends.numpy.kernels.copying import copy, dense
from irload.plan.backends.numpy.kernels.gathering import take, take_shared
from irload.plan.backends.numpy.kernels.views import merged, seen, shaped
from irload.plan.backends.numpy.selection.selector import NumpySelector, Selected
from irload.plan.ir.steps import ConcatStep, GatherStep, RelayoutStep, ViewStep


def view_or_copy(step: ViewStep, selector: NumpySelector) -> Selected:
    """Select a copy, or no call if the output is a view of memory."""
    if selector.memory.is_view(step.output):
        return "view", []
    source, out = selector.array(step.inputs[0]), selector.array(step.output)
    view = seen(source, step.view)
    if view is not None:
        return "copy", copy(out, view, selector.threads)
    into = merged(out, *source.shape)  # a reshape without a view
    if into is not None:
        return "copy", copy(into, source, selector.threads)
    phases: Phases = []
    packed = dense(source, selector.scratch, phases)
    return "copy", phases + copy(out, shaped(packed, *out.shape), selector.threads)


def concat(step: ConcatStep, selector: NumpySelector) -> Selected:
    """Copy the inputs to their slices of the output."""
    out, start = selector.array(step.output), 0
    phases: Phases = []
    for value in step.inputs:
        index = (*(slice(None),) * step.axis, slice(start, start + value.shape[step.axis]))
        start += value.shape[step.axis]
        phases += copy(out[index], selector.array(value), selector.threads) if value.size else []
    return "slices", phases


def gather(step: GatherStep, selector: NumpySelector) -> Selected:
    """Copy the slices selected by the indices."""
    table = None if step.axis or step.shared else selector.compressed(step.inputs[0], 1)
    if table is not None and not step.widens:
        arguments = selector.array(step.output), table, selector.array(step.inputs[1])
        return "widened rows", [[[(take_widened, arguments)]]]
    data, indices = (selector.array(v) for v in step.inputs)
    arrays = selector.array(step.output), data, indices
    if step.shared:
        return "slices selected", [[[(take_shared, (*arrays, step.axis, step.shared))]]]
    return "slices selected", [[[(take, (*arrays, step.axis))]]]


def relayout(step: RelayoutStep, selector: NumpySelector) -> Selected:
    """Copy between two strided layouts."""
    return "copy", copy(selector.array(step.output), selector.array(step.inputs[0]), selector.threads)

"""Replace ScatterNDUpdate at the positions of a slice by a Concat.

OpenVINO converts the assignment `x[:, 1:] = y` of PyTorch to a scatter into the flat array, whose indices are a Range
of all positions, reshaped like `x` and sliced. Small Ranges of known length are constants; their scatters are lowered.
"""

from __future__ import annotations

from math import prod

from irload.core.op import is_builtin
from irload.core.size import alike, extent
from irload.plan.ir.boxes import IndexBox, replaced
from irload.plan.ir.program import Producers, Program, Step, Value
from irload.plan.ir.steps import ComputeStep, ReshapeStep, SliceStep


def concat_assignments(program: Program) -> None:
    """Replace each scatter whose indices are the positions of a slice with steps of 1."""
    producers = program.producers()
    program.rewrite(ComputeStep, lambda step: _assignment(step, producers))


def _assignment(step: ComputeStep, producers: Producers) -> list[Step] | None:
    """Return the steps that replace a box of the data; None for any other step."""
    if not is_builtin(step.op) or step.op.type != "ScatterNDUpdate":
        return None
    data, indices, updates = step.inputs
    box = _box(indices, data, producers)
    if box is None or step.op.attributes.get("reduction", "none") != "none":
        return None
    steps = replaced(data, updates, box, step.outputs)
    for new in steps:
        new.origin = step.origin
    return steps


def _box(indices: Value, data: Value, producers: Producers) -> IndexBox | None:
    """Return the box of flat `data` whose positions are the indices; None if they are not the positions of a slice."""
    if len(data.shape) != 1 or not alike(indices.shape[-1], 1):
        return None
    views: list[ReshapeStep | SliceStep] = []
    while isinstance(view := producers.get(indices), ReshapeStep | SliceStep):
        views.insert(0, view)
        indices = view.inputs[0]
    if not _counts_all(producers.get(indices), data.size):
        return None
    while views and isinstance(views[0], ReshapeStep):
        indices = views.pop(0).output
    sizes = counts = indices.shape
    first: list[int] = [0] * len(sizes)
    while views and isinstance(part := views[0], SliceStep):
        views.pop(0)
        for axis, index in enumerate(part.index):
            start, _, step = extent(index, counts[axis])
            if not alike(step, 1):
                return None
            first[axis] = first[axis] + start
        counts = part.output.shape
    if not all(isinstance(view, ReshapeStep) for view in views) or any(alike(count, 0) for count in counts):
        return None
    if not alike(prod(sizes), data.size):
        return None
    return IndexBox(sizes, tuple(first), counts)


def _counts_all(step: Step | None, count: int) -> bool:
    """True for a Range of the integers 0, 1, …, count − 1."""
    if not isinstance(step, ComputeStep) or not is_builtin(step.op) or step.op.type != "Range":
        return False
    start, _, each = (value.constant for value in step.inputs)
    if start is None or each is None or step.output.dtype.kind != "i" or not alike(step.output.size, count):
        return False
    return start.tolist() == 0 and each.tolist() == 1

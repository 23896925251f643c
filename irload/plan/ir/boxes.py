"""Boxes in arrays, and the steps that replace the elements of a box."""

from __future__ import annotations

from math import prod

from irload.core.size import alike
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ConcatStep, ReshapeStep, SliceStep
from irload.record import record


@record()
class IndexBox:
    """A box in an array of shape `sizes`: along axis k, the `counts[k]` elements that start at `first[k]`."""

    sizes: tuple[int, ...]
    first: tuple[int, ...]
    counts: tuple[int, ...]


def replaced(data: Value, updates: Value, box: IndexBox, outputs: list[Value]) -> list[Step]:
    """Return the steps that replace a box of the data by updates. An element of the box is a block of the data."""
    boxed = prod(box.sizes)
    block = 1 if alike(boxed, data.size) else data.size // boxed

    def shaped(value: Value, counts: tuple[int, ...]) -> ReshapeStep:
        return ReshapeStep([value], [Value((*counts, block), value.dtype, name=value.name)])

    steps: list[Step] = [shaped(data, box.sizes), shaped(updates, box.counts)]
    whole, joined = steps[0].output, steps[1].output
    ranges = [slice(f, f + c) for f, c in zip(box.first, box.counts, strict=True)]

    def outside(axis: int, start: int, stop: int) -> list[Step]:
        """Return the data before or after the box along an axis."""
        if start == stop:
            return []
        shape = (*box.counts[:axis], stop - start, *box.sizes[axis + 1 :], block)
        out = data.like(shape)
        return [SliceStep([whole], [out], index=(*ranges[:axis], slice(start, stop)))]

    for axis in reversed(range(len(box.sizes))):
        before, after = outside(axis, 0, ranges[axis].start), outside(axis, ranges[axis].stop, box.sizes[axis])
        if before or after:
            parts = [*(s.output for s in before), joined, *(s.output for s in after)]
            joined = Value((*box.counts[:axis], *box.sizes[axis:], block), data.dtype, name=outputs[0].name)
            steps += [*before, *after, ConcatStep(parts, [joined], axis=axis)]
    return [*steps, ReshapeStep([joined], outputs)]

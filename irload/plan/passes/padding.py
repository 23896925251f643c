"""Zeros before convolutions: Conv(Concat(0, x, 0), w) along an axis of the map → Conv(x, w) with larger pads.

That is what a Pad with zeros is, which exporters from TensorFlow write wherever a stride makes the padding uneven.
"""

from __future__ import annotations

from dataclasses import replace

from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import Concat, Conv


def fuse_padding(program: Program) -> None:
    """Have convolutions pad by themselves where that leaves no window in the zeros alone."""
    producers = program.producers()
    for conv in program.steps:
        while isinstance(conv, Conv):
            source = producers.get(conv.inputs[0])
            fused = _fused(source, conv) if isinstance(source, Concat) else None
            if source is None or fused is None:
                break
            alone = program.sole_consumer(conv.inputs[0]) is conv
            program.replace([source, conv] if alone else [conv], [fused])
            conv = fused


def _fused(source: Concat, conv: Conv) -> Conv | None:
    """The convolution that pads by itself, None where the concatenation is something else."""
    axis = source.axis - 2
    around = _zeros_around(source)
    if around is None or axis < 0:
        return None
    before, data, behind = around
    begin, end = conv.pads_begin[axis] + before, conv.pads_end[axis] + behind
    if max(begin, end) > (conv.inputs[1].shape[3 + axis] - 1) * conv.dilations[axis]:
        return None
    return replace(
        conv,
        inputs=[data, *conv.inputs[1:]],
        pads_begin=(*conv.pads_begin[:axis], begin, *conv.pads_begin[axis + 1 :]),
        pads_end=(*conv.pads_end[:axis], end, *conv.pads_end[axis + 1 :]),
        origin=tuple(dict.fromkeys((*source.origin, *conv.origin))),
    )


def _zeros_around(step: Concat) -> tuple[int, Value, int] | None:
    """The data, and how many zeros stand before and behind it; None where it is not one value between zeros."""
    data = [k for k, v in enumerate(step.inputs) if not v.is_constant]
    if len(data) != 1 or any(v.constant.any() for v in step.inputs if v.constant is not None):
        return None
    (at,) = data
    before, behind = (sum(v.shape[step.axis] for v in some) for some in (step.inputs[:at], step.inputs[at + 1 :]))
    return before, step.inputs[at], behind

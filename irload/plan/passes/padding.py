"""Fold zero padding into convolutions: Conv(Concat(0, x, 0), w) along a spatial axis → Conv(x, w) with larger pads.

A Pad with zeros is lowered to this Concat. TensorFlow's exporters write a Pad if a stride makes the padding asymmetric.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irload.plan.ir.program import Program, Step, Value, origin_of
from irload.plan.ir.steps import BroadcastStep, ConcatStep, ConvStep


def fuse_padding(program: Program) -> None:
    """Fold zero padding into convolutions, unless a window would read only padding."""
    producers = program.producers()
    for conv in program.steps:
        while isinstance(conv, ConvStep):
            source = producers.get(conv.inputs[0])
            fused = _fused(source, conv, producers) if isinstance(source, ConcatStep) else None
            if source is None or fused is None:
                break
            alone = program.sole_consumer(conv.inputs[0]) is conv
            program.replace([source, conv] if alone else [conv], [fused])
            conv = fused


def _fused(source: ConcatStep, conv: ConvStep, producers: Mapping[Value, Step]) -> ConvStep | None:
    """Return the convolution with larger pads, or None if the concatenation is not zero padding."""
    axis = source.axis - 2
    around = _zeros_around(source, producers)
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
        origin=origin_of([source, conv]),
    )


def _zeros_around(step: ConcatStep, producers: Mapping[Value, Step]) -> tuple[int, Value, int] | None:
    """Return the data and the number of zeros before and after it; None unless it is one value between zeros."""
    pieces = [_constant_of(v, producers) for v in step.inputs]
    data = [k for k, piece in enumerate(pieces) if piece is None]
    if len(data) != 1 or any(v.constant.any() for v in pieces if v is not None and v.constant is not None):
        return None
    (at,) = data
    before, behind = (sum(v.shape[step.axis] for v in some) for some in (step.inputs[:at], step.inputs[at + 1 :]))
    return before, step.inputs[at], behind


def _constant_of(value: Value, producers: Mapping[Value, Step]) -> Value | None:
    """Return the value if it is constant, or the constant that is broadcast to it; None for other values."""
    source = producers.get(value)
    value = source.inputs[0] if isinstance(source, BroadcastStep) else value
    return value if value.is_constant else None

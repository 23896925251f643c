"""Zeros before convolutions: Conv(Pad(x), w) → Conv(x, w) with larger pads.

Exporters from TensorFlow write them so wherever a stride makes the padding uneven.
"""

from __future__ import annotations

from dataclasses import replace

from irload.core.op import is_builtin
from irload.plan.ir.program import Program
from irload.plan.ir.steps import Compute, Conv

Pads = list[tuple[int, int]]
"""Elements before and after each axis."""


def fuse_padding(program: Program) -> None:
    """Have convolutions pad by themselves where that leaves no window in the zeros alone."""
    producers = program.producers()
    for conv in program.steps:
        if not isinstance(conv, Conv):
            continue
        source = producers.get(conv.inputs[0])
        pads = _zeros(source) if isinstance(source, Compute) else None
        if source is None or pads is None or any(map(any, pads[:2])):
            continue
        begin = tuple(a + b for a, (b, _) in zip(conv.pads_begin, pads[2:], strict=True))
        end = tuple(a + b for a, (_, b) in zip(conv.pads_end, pads[2:], strict=True))
        spans = [(k - 1) * d for k, d in zip(conv.inputs[1].shape[3:], conv.dilations, strict=True)]
        if any(max(b, e) > span for b, e, span in zip(begin, end, spans, strict=True)):
            continue
        fused = replace(conv, inputs=[source.inputs[0], *conv.inputs[1:]], pads_begin=begin, pads_end=end)
        fused.origin = (*source.origin, *conv.origin)
        alone = program.sole_consumer(conv.inputs[0]) is conv
        program.replace([source, conv] if alone else [conv], [fused])


def _zeros(step: Compute) -> Pads | None:
    """The zeros that a Pad puts around its input, None for all else: other numbers, counts that crop or are unknown."""
    if step.op.type != "Pad" or step.op.namespace != "opset" or not is_builtin(step.op):
        return None
    begin, end, *value = (v.constant for v in step.inputs[1:])
    if step.op.attributes["pad_mode"] != "constant" or begin is None or end is None:
        return None
    if value and (value[0] is None or value[0].any()):
        return None
    pads = list(zip(begin.tolist(), end.tolist(), strict=True))
    return pads if min(map(min, pads)) >= 0 else None

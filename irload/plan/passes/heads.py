"""Let heads share keys and values: Attention(q, repeated k, repeated v) → Attention(q in groups, k, v).

Grouped-query attention repeats each head of k and v for a group of queries: Reshape, Broadcast, Reshape. The kernel
broadcasts leading axes, so the copies are unnecessary.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from irload.plan.ir.program import Producers, Program, Step, Value
from irload.plan.ir.reshaping import reshaped
from irload.plan.ir.sized import hashable
from irload.plan.ir.steps import AttentionStep, BroadcastStep, ReshapeStep


def share_heads(program: Program) -> None:
    """Let attention read k and v before they are repeated, with the heads of q and of the result split into groups."""
    producers = program.producers()
    known: dict[Hashable, Value] = {}
    for step in program.steps:
        if not isinstance(step, AttentionStep):
            continue
        q, k, v, *masks = step.inputs
        shared = _repeated(producers, k), _repeated(producers, v)
        if shared[0] is None or shared[1] is None or q.shape[:-2] != k.shape[:-2] or k.shape[:-2] != v.shape[:-2]:
            continue
        *lead, heads = shared[0].shape[:-3]
        group = k.shape[-3] // heads
        if shared[1].shape[:-2] != shared[0].shape[:-2]:
            continue
        steps: list[Step] = []
        members = (*lead, heads, group)
        queries = reshaped(q, (*members, *q.shape[-2:]), steps)
        wide = [_widened(mask, heads, group, steps, known) for mask in masks]
        out = step.output.like((*members, *step.output.shape[-2:]))
        grouped = replace(step, inputs=[queries, shared[0], shared[1], *wide], outputs=[out])
        program.replace([step], [*steps, grouped, ReshapeStep([out], step.outputs)])


def _repeated(producers: Producers, value: Value) -> Value | None:
    """Return […, heads, 1, rows, width] if the value repeats each head once per member of a group."""
    merged = producers.get(value)
    spread = producers.get(merged.inputs[0]) if isinstance(merged, ReshapeStep) else None
    if not isinstance(spread, BroadcastStep) or len(value.shape) < 3:
        return None
    source, wide = spread.inputs[0], spread.output
    *lead, heads, group, rows, width = source.shape if len(source.shape) > 3 else (0, 0, 0, 0)
    if group != 1 or wide.shape[:-3] != (*lead, heads) or wide.shape[-2:] != (rows, width):
        return None
    return source if value.shape == (*lead, heads * wide.shape[-3], rows, width) else None


def _widened(mask: Value, heads: int, group: int, steps: list[Step], known: dict[Hashable, Value]) -> Value:
    """Return the mask with an axis for the members of a group. Layers with the same mask share the `known` view."""
    if len(mask.shape) < 3:
        return mask
    *lead, mask_heads, rows, keys = mask.shape
    shape = (*lead, *((1, 1) if mask_heads == 1 else (heads, group)), rows, keys)
    key = mask, hashable(shape)
    if key not in known:
        known[key] = reshaped(mask, shape, steps)
    return known[key]

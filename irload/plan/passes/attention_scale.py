"""Fold constant factors of q and k into attention: Attention(q · s, k) → Attention(q, k) with query_scale · s.

PyTorch's exporter multiplies both by the fourth root of 1/width.
"""

from __future__ import annotations

from dataclasses import replace

from irload.plan.ir.program import Program, Step, origin_of
from irload.plan.ir.steps import AttentionStep, ElementwiseStep
from irload.plan.passes.attention import factor_of, is_moderate


def fold_attention_scales(program: Program) -> None:
    """Fold constant factors of q and k into every attention, unless another step reads the scaled q or k."""
    producers = program.producers()
    for step in program.steps:
        if not isinstance(step, AttentionStep):
            continue
        inputs, scale, folded = list(step.inputs), step.query_scale, list[Step]()
        for k in (0, 1):
            producer = producers.get(inputs[k])
            while isinstance(producer, ElementwiseStep) and program.sole_consumer(inputs[k]) is not None:
                factor = factor_of(producer)
                if factor is None or not is_moderate(scale * factor):
                    break
                scale *= factor
                inputs[k] = producer.inputs[0]
                folded.append(producer)
                producer = producers.get(inputs[k])
        if folded:
            origin = origin_of([*folded, step])
            program.replace([*folded, step], [replace(step, inputs=inputs, query_scale=scale, origin=origin)])

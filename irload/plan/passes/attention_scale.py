"""Numbers that q or k are multiplied by: Attention(q · s, k) → Attention(q, k) with s in its scale.

PyTorch's exporter multiplies both by the fourth root of 1/width.
"""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import Attention, Elementwise
from irload.plan.passes.attention import factor_of


def take_scales(program: Program) -> None:
    """Take the numbers into every attention, where nothing else takes the product."""
    producers = program.producers()
    for step in program.steps:
        if not isinstance(step, Attention):
            continue
        inputs, scale, taken = list(step.inputs), step.scale, list[Step]()
        for k in (0, 1):
            producer = producers.get(inputs[k])
            while isinstance(producer, Elementwise) and program.sole_consumer(inputs[k]) is not None:
                factor = factor_of(producer)
                if factor is None or not isfinite(scale * factor) or not scale * factor:
                    break
                scale *= factor
                inputs[k] = producer.inputs[0]
                taken.append(producer)
                producer = producers.get(inputs[k])
        if taken:
            origin = tuple(dict.fromkeys(n for s in (*taken, step) for n in s.origin))
            program.replace([*taken, step], [replace(step, inputs=inputs, scale=scale, origin=origin)])

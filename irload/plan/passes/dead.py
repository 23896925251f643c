"""Dead steps: what no output of the program needs → gone. Steps with an effect (state) stay."""

from __future__ import annotations

from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import Compute


def drop_dead(program: Program) -> None:
    """Remove every step none of whose outputs is needed."""
    needed: set[Value] = set(program.outputs)
    kept = []
    for step in reversed(program.steps):
        effect = isinstance(step, Compute) and step.op.signature.compute_context
        if effect or any(v in needed for v in step.outputs):
            needed.update(step.inputs)
            kept.append(step)
    program.steps = kept[::-1]

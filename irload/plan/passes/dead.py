"""Dead code elimination: removes steps whose results are unused, unless they have a side effect, such as on state."""

from __future__ import annotations

from irload.plan.ir.program import Program, Value


def drop_dead(program: Program) -> None:
    """Remove every step none of whose outputs is used."""
    needed: set[Value] = set(program.outputs)
    kept = []
    for step in reversed(program.steps):
        if step.has_effect or any(v in needed for v in step.outputs):
            needed.update(step.inputs)
            kept.append(step)
    program.steps = kept[::-1]

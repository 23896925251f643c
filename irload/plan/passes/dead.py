"""Dead code elimination: removes steps whose results are unused, except steps with side effects, such as Assign."""

from __future__ import annotations

from irload.plan.ir.program import Program, Value


def drop_dead(program: Program) -> None:
    """Remove every step without a side effect whose outputs are all unused."""
    needed: set[Value] = set(program.outputs)
    kept = []
    for step in reversed(program.steps):
        if step.has_effect or any(v in needed for v in step.outputs):
            needed.update(step.inputs)
            kept.append(step)
    program.steps = kept[::-1]

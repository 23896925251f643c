"""Dead code elimination: removes steps whose results are unused, except steps with side effects, such as Assign."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from irload.plan.ir.program import Program, Step, Value


def drop_dead(program: Program) -> None:
    """Remove every step without a side effect whose outputs are all unused."""
    program.steps = live_steps(program.steps, program.outputs, lambda step: step.has_effect)


def live_steps(
    steps: Sequence[Step], read: Iterable[Value], keeps: Callable[[Step], bool] = lambda step: False
) -> list[Step]:
    """Return the steps that compute values in `read`, directly or through others, and steps that `keeps` accepts."""
    needed = set(read)
    kept: list[Step] = []
    for step in reversed(steps):
        if keeps(step) or any(v in needed for v in step.outputs):
            needed.update(step.inputs)
            kept.append(step)
    return kept[::-1]

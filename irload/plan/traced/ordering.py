"""Orders steps into as few segments as dependencies allow, since each segment is bound and called separately."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from irload.core.op import is_builtin
from irload.core.size import hint
from irload.plan.backends.base import Backend
from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import ComputeStep, GatherStep
from irload.plan.segments import Owners

SMALL = 1 << 16
"""Maximum bytes, at the traced shape, read and written by a segment of data movements that is assigned to `last`."""


def gather_segments(program: Program, owners: Owners, last: Backend, pinned: AbstractSet[Step]) -> None:
    """Reorder the steps of two back ends into as few segments as possible.

    The back end `last` supports every step. Small data movements between two segments of `last` are assigned to `last`,
    which merges the segments, unless the steps are `pinned`.
    """
    if len(set(owners.values())) != 2 or last not in owners.values():
        return
    levels = _levels(program, owners)
    for level in range(1, max(levels.values()) + 1):
        segment = [s for s, n in levels.items() if n == level]
        moves = all((s.keeps_elements or isinstance(s, GatherStep)) and s not in pinned for s in segment)
        nbytes = sum(hint(v.nbytes) for s in segment for v in (*s.inputs, *s.outputs))
        if moves and nbytes <= SMALL:
            owners.update(dict.fromkeys(segment, last))
    levels = _levels(program, owners)
    program.steps = sorted(program.steps, key=lambda step: -levels[step])


def _levels(program: Program, owners: Owners) -> dict[Step, int]:
    """Return the number of segments after each step, in the order with the fewest segments."""
    candidates = [_segments_after(program, owners, final) for final in dict.fromkeys(owners.values())]
    return min(candidates, key=lambda levels: len(set(levels.values())))


def _segments_after(program: Program, owners: Owners, final: Backend) -> dict[Step, int]:
    """Return the minimum number of segments after each step, if the last segment runs on this back end."""
    steps, producers = program.steps, program.producers()
    readers: dict[Step, list[Step]] = {step: [] for step in steps}
    ordered: Step | None = None
    for step in steps:
        for value in step.inputs:
            if value in producers:
                readers[producers[value]].append(step)
        if _is_ordered(step):
            if ordered is not None:
                readers[ordered].append(step)
            ordered = step
    after: dict[Step, int] = {}
    for step in reversed(steps):
        least = 0 if owners[step] is final else 1
        after[step] = max([after[r] + (owners[r] is not owners[step]) for r in readers[step]], default=least)
    return after


def _is_ordered(step: Step) -> bool:
    """True for steps whose order matters: operations with state or random numbers, and operations of extensions."""
    return isinstance(step, ComputeStep) and (step.has_effect or not step.op.folds or not is_builtin(step.op))

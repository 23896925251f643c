"""Which back end runs each step, what they ask of memory together, and what stands at the borders between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from irload.plan.backends.base import Backend
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import Relayout
from irload.plan.memory.requests import MemoryRequests

Owners = dict[Step, Backend]
"""The back end that runs each step."""


def divide(
    program: Program, backends: Sequence[Backend], check: Callable[[Program, str], None]
) -> tuple[Owners, MemoryRequests]:
    """Have all back ends rewrite what they support, and give every step to the first one that supports it.

    Layouts that strides do not describe are known to the back end alone that asks for them. Where the steps of others,
    or the caller, take such a value, a Relayout step of that back end is added between; so it is behind results that a
    back end wants to make planar itself.
    """
    for backend in backends:
        backend.fuse(program)
        check(program, f"the passes of {backend.name}")
    owners = {step: next(b for b in backends if b.supports(step)) for step in program.steps}
    found = _requests(program, backends, owners)
    private = {v for v, layout in found.layouts.items() if not layout.is_strided} | found.relaid
    if _insert_relayouts(program, owners, private):
        check(program, "the borders of segments")
        found = _requests(program, backends, owners)
    return owners, found


def _requests(program: Program, backends: Sequence[Backend], owners: Owners) -> MemoryRequests:
    steps = program.steps
    found = MemoryRequests.together(b.requests(program, [s for s in steps if owners[s] is b]) for b in backends)
    outside = {*program.inputs, *(s.output for s in steps if isinstance(s, Relayout))}
    # What others than the back end fill or read lies as strides describe.
    found.layouts = {v: layout for v, layout in found.layouts.items() if layout.is_strided or v not in outside}
    return found


def _insert_relayouts(program: Program, owners: Owners, private: set[Value]) -> bool:
    """Relayout steps behind values that are private to a back end and taken by others. True where any was needed."""
    needed = False
    producers = program.producers()
    for value in [v for v in producers if v in private]:
        producer, consumers = producers[value], dict.fromkeys(program.consumers(value))
        owner = owners[producer]
        if value not in program.returned and all(owners[s] is owner for s in consumers):
            continue
        needed = True
        own = Value(value.shape, value.dtype, name=value.name)
        relayout = Relayout([own], [value], origin=producer.origin)
        changes: dict[Step, list[Step]] = {producer: [_with(producer, "outputs", value, own), relayout]}
        changes |= {s: [_with(s, "inputs", value, own)] for s in consumers if owners[s] is owner}
        for old, new in changes.items():
            program.replace([old], new)
            owners.update(dict.fromkeys(new, owner))
            producers.update((v, step) for step in new for v in step.outputs)
    return needed


def _with(step: Step, field: str, old: Value, new: Value) -> Step:
    """The step with another value in its inputs or outputs."""
    changed = copy(step)
    setattr(changed, field, [new if v is old else v for v in getattr(step, field)])
    return changed

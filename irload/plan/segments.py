"""Divides a program among back ends: assigns its steps, merges memory requests, converts between private layouts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from irload.plan.backends.base import Backend
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.sized import hashable
from irload.plan.ir.steps import RelayoutStep
from irload.plan.memory.requests import MemoryRequests

Owners = dict[Step, Backend]
"""The back end that runs each step."""


def divide(
    program: Program,
    backends: Sequence[Backend],
    check: Callable[[Program, str], None],
    arrange: Callable[[Program, Owners], None] | None = None,
) -> tuple[Owners, MemoryRequests]:
    """Let all back ends rewrite the program, then assign every step to the first one that supports it.

    Layouts with a stored type are private to the back end that requests them. If steps of other back ends, or the
    caller, read a value in a private layout, a Relayout step of the owning back end is inserted. Relayout steps are
    also inserted after `copied_results` and before steps in `first_input_layouts` (see `MemoryRequests`).

    `arrange` may reorder the steps and assign them to other back ends that support them.
    """
    for backend in backends:
        backend.fuse(program)
        check(program, f"the passes of {backend.name}")
    owners = {step: next(b for b in backends if b.supports(step)) for step in program.steps}
    if arrange is not None:
        arrange(program, owners)
    requests = _requests(program, backends, owners)
    private = {v for v, layout in requests.layouts.items() if layout.is_private} | requests.copied_results
    if _insert_relayouts(program, owners, private):
        check(program, "the borders of segments")
        requests = _requests(program, backends, owners)
    if requests.first_input_layouts:
        _insert_reorders(program, owners, requests)
        check(program, "the reorders of operands")
    return owners, requests


def _requests(program: Program, backends: Sequence[Backend], owners: Owners) -> MemoryRequests:
    steps = program.steps
    requests = MemoryRequests.together(b.requests(program, [s for s in steps if owners[s] is b]) for b in backends)
    outside = {*program.inputs, *(s.output for s in steps if isinstance(s, RelayoutStep))}
    # Several back ends or the caller access these values, so they are stored in their logical type.
    requests.layouts = {v: layout for v, layout in requests.layouts.items() if not (layout.is_private and v in outside)}
    return requests


def _insert_relayouts(program: Program, owners: Owners, private: set[Value]) -> bool:
    """Insert a Relayout step after each private value that the caller or another back end reads.

    Returns True if a step was inserted.
    """
    needed = False
    producers = program.producers()
    for value in [v for v in producers if v in private]:
        producer, consumers = producers[value], dict.fromkeys(program.consumers(value))
        owner = owners[producer]
        if value not in program.returned and all(owners[s] is owner for s in consumers):
            continue
        needed = True
        internal = Value(value.shape, value.dtype, name=value.name)
        relayout = RelayoutStep([internal], [value], origin=producer.origin)
        changes: dict[Step, list[Step]] = {producer: [_with(producer, value, internal), relayout]}
        changes |= {s: [_with(s, value, internal)] for s in consumers if owners[s] is owner}
        for old, new in changes.items():
            program.replace([old], new)
            owners.update(dict.fromkeys(new, owner))
            producers.update((v, step) for step in new for v in step.outputs)
    return needed


def _insert_reorders(program: Program, owners: Owners, requests: MemoryRequests) -> None:
    """Insert Relayout steps that copy the first input of each step in `requests.first_input_layouts`.

    Steps that read equal copies share one Relayout step, before the first of them.
    """
    copies: dict[Hashable, Value] = {}
    for step in program.steps:
        layout = requests.first_input_layouts.get(step)
        if layout is None:
            continue
        value, owner, new = step.inputs[0], owners[step], list[Step]()
        key = value, hashable(layout)  # sizes may be symbolic
        shared = copies.get(key)
        if shared is None:
            shared = copies[key] = Value(value.shape, value.dtype, name=value.name)
            requests.layouts[shared] = layout
            new.append(RelayoutStep([value], [shared], origin=step.origin[:1]))
        changed = replace(step, inputs=[shared, *step.inputs[1:]])
        program.replace([step], [*new, changed])
        owners.update(dict.fromkeys((*new, changed), owner))


def _with(step: Step, old: Value, new: Value) -> Step:
    """Return the step with one value replaced."""
    inputs, outputs = ([new if v is old else v for v in values] for values in (step.inputs, step.outputs))
    return replace(step, inputs=inputs, outputs=outputs)

"""Checks the invariants of programs. Only tests run the checks: after lowering and after each pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from irload.plan.ir.program import PlanInvalid, Program, Value


def verify(program: Program, after: str = "lowering", stored: Mapping[Value, np.dtype[Any]] | None = None) -> None:
    """Check that each value has one producer, which precedes its readers; also check steps, outputs and stored types.

    `stored`: the stored types of values, if they differ from `Value.dtype`. Raises PlanInvalid with the step, the
    violated rule and the pass.
    """
    stored = stored or {}
    producers: dict[Value, object] = dict.fromkeys(program.inputs, "the caller")
    for k, step in enumerate(program.steps):
        where = f"after {after}: step {k}, {type(step).__name__} ({step.title})"
        for value in step.inputs:
            if not value.is_constant and value not in producers:
                _fail(where, f"reads {value}, which no earlier step produces")
        for value in step.outputs:
            if value.is_constant:
                _fail(where, f"produces {value}, which is a constant")
            if value in producers:
                _fail(where, f"produces {value}, which {producers[value]} already produces")
            producers[value] = f"step {k}"
        try:
            step.check()
        except (PlanInvalid, ValueError) as error:
            _fail(where, f"{error}; inputs {step.inputs}, outputs {step.outputs}")
        types = {v: stored.get(v, v.dtype) for v in (*step.inputs, *step.outputs)}
        if step.keeps_elements and len(set(types.values())) > 1:
            _fail(where, f"keeps elements, but its operands are stored as {types}")
    for value in program.outputs:
        if not value.is_constant and value not in producers:
            _fail(f"after {after}", f"no step produces the output {value}")
    for value, dtype in stored.items():
        if value.is_constant or value in program.inputs or value in program.returned:
            _fail(f"after {after}", f"{value} is stored as {dtype}, but the caller reads or writes it")
        if not (np.can_cast(dtype, value.dtype) or np.can_cast(value.dtype, dtype)):
            _fail(f"after {after}", f"{value} is stored as {dtype}, which neither contains its type nor is part of it")


def _fail(where: str, problem: str) -> NoReturn:
    raise PlanInvalid(f"{where}: {problem}")

"""Expressions."""

from __future__ import annotations

from irload.plan.bind import Binder, Phases, binds
from irload.plan.kernels.map import map_parts
from irload.plan.steps import Map


@binds(Map)
def map(step: Map, binder: Binder) -> tuple[str, Phases]:
    """An expression."""
    out, operands = binder.view(step.output), [binder.view(v) for v in step.inputs]
    return "tiles", [map_parts(step.expression, operands, out, binder.scratch, binder.threads)]

"""Expressions."""

from __future__ import annotations

from irload.plan.backends.numpy.kernels.elementwise import map_parts
from irload.plan.backends.numpy.selection.selector import Binder, Phases, binds
from irload.plan.ir.steps import Elementwise


@binds(Elementwise)
def map(step: Elementwise, binder: Binder) -> tuple[str, Phases]:
    """An expression."""
    out, operands = binder.view(step.output), [binder.view(v) for v in step.inputs]
    return "tiles", [map_parts(step.expression, operands, out, binder.scratch, binder.threads)]

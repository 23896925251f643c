"""Elementwise work on a fresh result: Map(f, Window(x), y) → Window(x, y; epilogue f). Likewise Product, Normalize."""

from __future__ import annotations

from copy import copy

from irload.plan.program import Program, Step
from irload.plan.steps import Map, Normalize, Product, Window

Host = Window | Product | Normalize
OWN_INPUTS = {Window: 2, Product: 2, Normalize: 1}
"""How many inputs each host has before those of its epilogue."""


def fuse_epilogues(program: Program) -> None:
    """Hang each Map onto the Window, Product or Normalize whose result only it takes."""
    pending: list[Step] = list(program.steps)
    for step in pending:
        if not isinstance(step, Window | Product | Normalize):
            continue
        taker = program.sole_consumer(step.output)
        if not isinstance(taker, Map) or taker.output.shape != step.output.shape:
            continue
        if step.epilogue.may_grow(taker.expression):
            fused = _fused(step, taker)
            program.replace([step, taker], [fused])
            pending.append(fused)  # more may follow


def _fused(host: Host, taker: Map) -> Host:
    """The host with the Map behind its epilogue."""
    at = taker.inputs.index(host.output)
    fused = copy(host)
    fused.inputs = [*host.inputs, *(v for k, v in enumerate(taker.inputs) if k != at)]
    fused.outputs = taker.outputs
    fused.epilogue = host.epilogue.then(taker.expression, at)
    fused.origin = (*host.origin, *taker.origin)
    return fused

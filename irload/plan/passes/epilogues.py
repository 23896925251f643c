"""Elementwise work on a result: Elementwise(f, Conv(x), y) → Conv(x, y; epilogue f). Likewise MatMul, Normalize."""

from __future__ import annotations

from copy import copy

from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import Conv, Elementwise, MatMul, Normalize

Host = Conv | MatMul | Normalize
OWN_INPUTS = {Conv: 2, MatMul: 2, Normalize: 1}
"""How many inputs each host has before those of its epilogue."""


def fuse_epilogues(program: Program) -> None:
    """Hang each Elementwise onto the Conv, MatMul or Normalize whose result only it takes."""
    pending: list[Step] = list(program.steps)
    for step in pending:
        if not isinstance(step, Conv | MatMul | Normalize):
            continue
        taker = program.sole_consumer(step.output)
        if not isinstance(taker, Elementwise) or taker.output.shape != step.output.shape:
            continue
        if step.epilogue.may_grow(taker.expression):
            fused = _fused(step, taker)
            program.replace([step, taker], [fused])
            pending.append(fused)  # more may follow


def _fused(host: Host, taker: Elementwise) -> Host:
    """The host with the Elementwise behind its epilogue."""
    at = taker.inputs.index(host.output)
    fused = copy(host)
    fused.inputs = [*host.inputs, *(v for k, v in enumerate(taker.inputs) if k != at)]
    fused.outputs = taker.outputs
    fused.epilogue = host.epilogue.then(taker.expression, at)
    fused.origin = (*host.origin, *taker.origin)
    return fused

"""Rewrites of a program, one a file, stated as before → after. They keep its meaning; `optimize` runs them in order."""

from __future__ import annotations

from irload.plan.backends.numpy.layouts import choose_layouts
from irload.plan.ir.program import Program
from irload.plan.passes.attention import recognise_attention
from irload.plan.passes.dead import drop_dead
from irload.plan.passes.elementwise import fuse_elementwise
from irload.plan.passes.epilogues import fuse_epilogues
from irload.plan.passes.functions import recognise_functions
from irload.plan.passes.heads import share_heads
from irload.plan.passes.normalizations import recognise_normalizations
from irload.plan.passes.resampling import convolve_before_resampling
from irload.plan.passes.rotary import recognise_rotary
from irload.plan.passes.scalars import fold_scalars
from irload.plan.passes.scale import fold_scale
from irload.plan.passes.transposes import sink_transposes
from irload.plan.sanitizer import verified

__all__ = ["optimize"]


def optimize(program: Program) -> Program:
    """Run every pass, in the order in which they help each other."""
    fusions = (fuse_epilogues, fuse_elementwise, recognise_functions)
    patterns = (
        recognise_normalizations,
        recognise_attention,
        recognise_rotary,
        share_heads,
        convolve_before_resampling,
        sink_transposes,
        drop_dead,
    )
    for rewrite in (drop_dead, fold_scale, fold_scalars, *patterns, *fusions, *fusions, choose_layouts):
        rewrite(program)
        verified(program, rewrite.__name__)
    return program

"""The passes that hold for every back end, their order, and why it is what it is."""

from __future__ import annotations

from collections.abc import Callable

from irload.plan.ir.program import Program
from irload.plan.passes.attention import recognise_attention
from irload.plan.passes.attention_scale import take_scales
from irload.plan.passes.dead import drop_dead
from irload.plan.passes.elementwise import fuse_elementwise
from irload.plan.passes.epilogues import fuse_epilogues
from irload.plan.passes.functions import recognise_functions
from irload.plan.passes.heads import share_heads
from irload.plan.passes.normalizations import recognise_normalizations
from irload.plan.passes.padding import fuse_padding
from irload.plan.passes.resampling import convolve_before_resampling
from irload.plan.passes.rotary import recognise_rotary
from irload.plan.passes.scalars import fold_scalars
from irload.plan.passes.scale import fold_scale
from irload.plan.passes.subnormals import drop_subnormals
from irload.plan.passes.taps import drop_taps
from irload.plan.passes.transposes import sink_transposes

Pass = Callable[[Program], None]

PASSES: tuple[Pass, ...] = (
    drop_dead,  # first: what nothing needs would hide that a value has one consumer
    fuse_padding,
    drop_taps,  # after fuse_padding, by which convolutions meet more padding
    fold_scale,  # before fold_scalars, which would make a number of a factor that is the same for all channels
    fold_scalars,  # before the patterns, which look for instructions with numbers
    recognise_normalizations,  # before any fusion, which would join the steps that the pattern consists of
    recognise_attention,  # likewise
    take_scales,  # after recognise_attention
    recognise_rotary,  # likewise
    share_heads,  # after recognise_attention, whose keys and values it changes
    convolve_before_resampling,  # before fuse_epilogues: it moves convolutions that have no epilogue yet
    sink_transposes,  # before fuse_epilogues, which takes what now follows a convolution or matmul directly
    drop_dead,  # the steps that the patterns have replaced
    fuse_epilogues,  # before fuse_elementwise: an epilogue saves more than a longer expression does
    fuse_elementwise,
    recognise_functions,  # on the longest expressions there are
    fuse_epilogues,  # once more: functions in one instruction leave room for more
    fuse_elementwise,
    recognise_functions,
    drop_subnormals,  # last: what products add up has become part of them
)
"""What runs, in this order."""


def optimize(program: Program, check: Callable[[Program, str], None] | None = None) -> Program:
    """Run every pass on the program, and `check` (program, name of the pass) after each."""
    for rewrite in PASSES:
        rewrite(program)
        if check is not None:
            check(program, rewrite.__name__)
    return program

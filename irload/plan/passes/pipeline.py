"""The order of the passes that are valid for every back end, with the reason for each position."""

from __future__ import annotations

from collections.abc import Callable

from irload.plan.ir.program import Program, Step
from irload.plan.passes.assignments import concat_assignments
from irload.plan.passes.attention import recognise_attention
from irload.plan.passes.dead import drop_dead
from irload.plan.passes.element_gathers import gather_elements
from irload.plan.passes.experts import route_rows
from irload.plan.passes.fusions import fuse_elementwise, fuse_epilogues
from irload.plan.passes.heads import share_heads
from irload.plan.passes.normalizations import recognise_normalizations
from irload.plan.passes.phases import merge_columns
from irload.plan.passes.planes import convolve_planes
from irload.plan.passes.quantized.products import IntegerProducts
from irload.plan.passes.resampling import convolve_before_resampling
from irload.plan.passes.rotary import recognise_rotary
from irload.plan.passes.routing import recognise_routing
from irload.plan.passes.scalars import fold_scalars
from irload.plan.passes.separate_numbers import separate_numbers
from irload.plan.passes.softmax import recognise_softmax
from irload.plan.passes.subnormals import drop_subnormals
from irload.plan.passes.taps import drop_taps
from irload.plan.passes.transposes import sink_transposes

Pass = Callable[..., None]
CHECKED: tuple[Pass, ...] = (gather_elements, fuse_epilogues, fuse_elementwise)
"""The passes whose results a back end may not support, even if it supports the steps that they replace."""

PASSES: tuple[Pass, ...] = (
    concat_assignments,  # before drop_dead, which removes the positions that no step reads any more
    gather_elements,  # before any fusion, which would hide the operations on the indices
    drop_dead,  # before fusions: an unused consumer would prevent fusions that require a single consumer
    drop_taps,
    fold_scalars,  # before the patterns, which match instructions with numbers
    recognise_normalizations,  # before any fusion, which would merge the steps of the pattern
    recognise_softmax,  # before any fusion
    recognise_attention,  # after recognise_softmax, whose Softmax it matches
    recognise_rotary,  # before any fusion
    recognise_routing,
    route_rows,  # after recognise_routing, whose Scatter it matches
    share_heads,  # after recognise_attention, whose keys and values it changes
    convolve_before_resampling,  # before fuse_epilogues: it moves convolutions without an epilogue
    sink_transposes,  # before fuse_epilogues, so that elementwise steps directly follow their convolution or matmul
    drop_dead,  # removes the steps that matched patterns no longer need
    fuse_epilogues,  # before fuse_elementwise: an epilogue saves more than a longer expression
    fuse_elementwise,
    fuse_epilogues,  # again: a merged step may be the only one that reads a result
    merge_columns,  # after all fusions, when the operands of epilogues are final
    convolve_planes,  # likewise
    drop_subnormals,  # after all fusions, when the operands of products are final
    separate_numbers,  # last: other passes match instructions with numbers
)
"""The passes, in order."""


BEFORE_INTEGERS = 3
"""Number of passes before `multiply_integers`, which needs the weights of the file."""


def optimize(
    program: Program,
    check: Callable[[Program, str], None] | None = None,
    integers: IntegerProducts | None = None,
    supports: Callable[[Step], bool] = lambda step: True,
) -> Program:
    """Run every pass on the program, and `check` (program, name of the pass) after each. Returns the program.

    `integers`: the products that are computed in integers; None if all products are in floats.
    `supports`: returns True for steps that a back end supports.
    """
    passes = list(PASSES)
    if integers is not None and integers.occurs_in(program):
        from irload.plan.passes.quantized.affine import compose_factors
        from irload.plan.passes.quantized.integers import multiply_integers  # rarely used, so imported on demand

        def in_integers(program: Program) -> None:
            multiply_integers(program, integers)

        passes[BEFORE_INTEGERS:BEFORE_INTEGERS] = [in_integers, drop_dead]
        passes.insert(-1, compose_factors)  # after all fusions, when epilogues are complete
    for rewrite in passes:
        if rewrite in CHECKED:
            rewrite(program, supports)
        else:
            rewrite(program)
        if check is not None:
            check(program, rewrite.__name__)
    return program

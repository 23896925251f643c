"""Which steps write their result over an operand, as a residual that is added: half the memory goes through caches."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

from irload.plan.backends.llvm.kernels.bf16_selection import pays_in_bf16
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import ROWS
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import Conv


def written_over(steps: Sequence[Step], relaid: Container[Value], target: Target) -> dict[Step, tuple[int, ...]]:
    """The operands over which steps can write, by position: those of 1 × 1 convolutions whose maps fill whole tiles.

    Other products make some results twice. `relaid`: values with channels innermost.
    """
    found: dict[Step, tuple[int, ...]] = {}
    for step in steps:
        if isinstance(step, Conv) and target.tiles and step.output in relaid and _fills_tiles(step):
            own = [k for k, v in enumerate(step.inputs) if k >= step.OWN and v.shape == step.output.shape]
            own = [k for k in own if step.inputs[k] is not step.inputs[0]]  # of which other channels are still to read
            if own and pays_in_bf16(step, target):
                found[step] = tuple(own)
    return found


def _fills_tiles(step: Conv) -> bool:
    """True for a convolution of each position by itself, of whole tiles of them."""
    kernel = step.inputs[1].shape[3:]
    alone = {*kernel, *step.strides} == {1} and not any((*step.pads_begin, *step.pads_end))
    return alone and prod(step.output.shape[2:]) % ROWS == 0

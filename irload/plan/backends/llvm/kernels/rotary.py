"""Rotary embedding, as a pointwise expression with two results: the halves of each row."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.elementwise import pointwise
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.steps import RotaryEmbeddingStep

_ROTATION = Expression(
    6,
    (
        Instruction("multiply", (0, 2)),
        Instruction("multiply", (1, 4)),
        Instruction("subtract", (6, 7)),
        Instruction("multiply", (1, 3)),
        Instruction("multiply", (0, 5)),
        Instruction("add", (9, 10)),
    ),
    (8, 11),
)
"""(x₁, x₂, cos₁, cos₂, sin₁, sin₂) → x₁·cos₁ − x₂·sin₁, x₂·cos₂ + x₁·sin₂."""


def select_rotary_embedding(step: RotaryEmbeddingStep, selector: Selector) -> list[Launch]:
    """The kernel of a rotary embedding, for tensors of any strides."""
    shape, half = step.output.shape, step.output.shape[-1] // 2
    tensors = [selector.array(step.output), *(np.broadcast_to(selector.array(v), shape) for v in step.inputs)]
    halves = [part for t in tensors for part in (t[..., :half], t[..., half:])]
    return [pointwise(_ROTATION, halves[:2], halves[2:], selector)]

"""Convert comparisons, logical operations and selections of f32 and booleans from Compute to Elementwise steps.

Only steps that a back end supports are converted. Traced plans run this pass after they have removed the steps that
compute masks from shapes or integers alone: NumPy computes these masks before the kernels run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from irload.core.op import is_builtin
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import ComputeStep, ElementwiseStep
from irload.plan.passes.elementwise import fuse_elementwise

BOOL, F32 = np.dtype(bool), np.dtype(np.float32)

NOT = "not"
BOTH: Mapping[str, tuple[str, ...]] = {
    "BitwiseAnd": ("minimum",),
    "BitwiseOr": ("maximum",),
    "BitwiseXor": ("equal", NOT),
    "Equal": ("equal",),
    "LessEqual": ("less_equal",),
    "Less": ("less",),
    "LogicalAnd": ("minimum",),
    "LogicalOr": ("maximum",),
    "LogicalXor": ("equal", NOT),
    "NotEqual": ("equal", NOT),
}
"""Operations on two operands: the opcode of both, then an opcode that is applied to the result."""
SWAPPED: Mapping[str, str] = {"Greater": "less", "GreaterEqual": "less_equal"}
"""Operations on two operands whose opcodes have the operands in reverse order."""


def lower_booleans(program: Program, supports: Callable[[Step], bool]) -> None:
    """Convert the steps, and fuse them with adjacent Elementwise steps. `supports`: True if a back end runs a step."""
    lowered = [(step, new) for step in program.steps if (new := _lowered(step)) is not None and supports(new)]
    for step, new in lowered:
        program.replace([step], [new])
    if lowered:
        fuse_elementwise(program)


def _lowered(step: Step) -> ElementwiseStep | None:
    if not isinstance(step, ComputeStep) or step.op.namespace != "opset" or not is_builtin(step.op):
        return None
    if any(v.dtype not in (BOOL, F32) or not v.size for v in (*step.inputs, *step.outputs)):
        return None
    instructions = _instructions(step)
    if not instructions or step.op.attributes.get("auto_broadcast") == "pdpd":
        return None
    expression = Expression(len(step.inputs), instructions)
    return ElementwiseStep(step.inputs, step.outputs, expression=expression, origin=step.origin)


def _instructions(step: ComputeStep) -> tuple[Instruction, ...]:
    """Return the instructions of an operation; none if it has no equivalent."""
    type = step.op.type
    if type in BOTH:
        opcode, *then = BOTH[type]
        return Instruction(opcode, (0, 1)), *(Instruction(name, (2,)) for name in then)
    if type in SWAPPED:
        return (Instruction(SWAPPED[type], (1, 0)),)
    match type:
        case "Select":
            return (Instruction("select", (0, 1, 2)),)
        case "LogicalNot" | "BitwiseNot":
            return (Instruction(NOT, (0,)),)
        case "IsNaN":
            return Instruction("equal", (0, 0)), Instruction(NOT, (1,))
        case "Convert" if step.output.dtype == F32:
            return (Instruction("convert", (0,), dtype=F32),)
        case "Convert" if step.inputs[0].dtype == F32:
            return (Instruction("nonzero", (0,)),)
        case _:
            return ()

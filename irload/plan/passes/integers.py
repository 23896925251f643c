"""Convert operations on booleans and integers, and comparisons of f32, from Compute to Elementwise and Reduce steps.

Only steps that a back end supports are converted. Traced plans run this pass after they have removed the steps that
compute masks from shapes or integers alone: NumPy computes these masks before the kernels run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from irload.core.op import is_builtin
from irload.core.shape import normalize_axes
from irload.ops.activation.rectifiers import whole
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ComputeStep, ElementwiseStep, ReduceStep
from irload.plan.passes.fusions import fuse_elementwise

BOOL, F32, I32 = np.dtype(bool), np.dtype(np.float32), np.dtype(np.int32)
INTEGERS = (I32, np.dtype(np.int64))
BYTES = (np.dtype(np.uint8), np.dtype(np.int8))

NOT = "not"
LOGIC: Mapping[str, tuple[str, ...]] = {
    "BitwiseAnd": ("minimum",),
    "BitwiseOr": ("maximum",),
    "BitwiseXor": ("equal", NOT),
    "LogicalAnd": ("minimum",),
    "LogicalOr": ("maximum",),
    "LogicalXor": ("equal", NOT),
}
"""Operations on two booleans: the opcode of both, then an opcode that is applied to the result."""
COMPARISONS: Mapping[str, tuple[str, ...]] = {
    "Equal": ("equal",),
    "LessEqual": ("less_equal",),
    "Less": ("less",),
    "NotEqual": ("equal", NOT),
}
"""Operations on two operands of any type, in the form of LOGIC."""
ARITHMETIC: Mapping[str, tuple[str, ...]] = {
    "Add": ("add",),
    "BitwiseAnd": ("bit_and",),
    "BitwiseLeftShift": ("shift_left",),
    "BitwiseOr": ("bit_or",),
    "BitwiseRightShift": ("shift_right",),
    "BitwiseXor": ("bit_xor",),
    "Maximum": ("maximum",),
    "Minimum": ("minimum",),
    "Multiply": ("multiply",),
    "Subtract": ("subtract",),
}
"""Operations on two integers, in the form of LOGIC."""
SWAPPED: Mapping[str, str] = {"Greater": "less", "GreaterEqual": "less_equal"}
"""Operations on two operands whose opcodes have the operands in reverse order."""


REDUCTIONS: Mapping[str, tuple[str, Sequence[np.dtype[np.generic]]]] = {
    "ReduceLogicalAnd": ("min", (BOOL,)),
    "ReduceLogicalOr": ("max", (BOOL,)),
    "ReduceMax": ("max", INTEGERS),
    "ReduceMin": ("min", INTEGERS),
    "ReduceSum": ("sum", INTEGERS),
}
"""The kind of the Reduce step of an operation, and the types that it reduces."""


def lower_integers(program: Program, supports: Callable[[Step], bool]) -> None:
    """Convert the steps, and fuse them with adjacent Elementwise steps. `supports`: True if a back end runs a step."""
    new_steps = [(step, _lowered(step)) for step in program.steps]
    lowered = [(step, new) for step, new in new_steps if new is not None and supports(new)]
    for step, new in lowered:
        program.replace([step], [new])
    if lowered:
        fuse_elementwise(program, supports)


def _lowered(step: Step) -> ElementwiseStep | ReduceStep | None:
    if not isinstance(step, ComputeStep) or step.op.namespace != "opset" or not is_builtin(step.op) or not step.inputs:
        return None
    if any(v.dtype not in (BOOL, F32, *INTEGERS, *BYTES) or not v.size for v in (*step.inputs, *step.outputs)):
        return None
    if step.op.attributes.get("auto_broadcast") == "pdpd":
        return None
    if step.op.type in REDUCTIONS:
        return _reduction(step)
    inputs = step.inputs[:1] if step.op.type == "ConvertLike" else step.inputs
    instructions, constants = _instructions(step), list[Value]()
    if not instructions and step.inputs[0].dtype in INTEGERS:
        instructions, numbers = _of_integers(step)
        constants = [Value.of(np.array(number, step.inputs[0].dtype), step.output.name) for number in numbers]
    if not instructions:
        return None
    expression = Expression(len(inputs) + len(constants), instructions)
    return ElementwiseStep([*inputs, *constants], step.outputs, expression=expression, origin=step.origin)


def _reduction(step: ComputeStep) -> ReduceStep | None:
    x, axes = step.inputs
    kind, dtypes = REDUCTIONS[step.op.type]
    if axes.constant is None or not axes.constant.size or not x.shape or x.dtype not in dtypes:
        return None
    along = set(normalize_axes(axes.constant.ravel().tolist(), len(x.shape)))
    return ReduceStep([x], step.outputs, kind=kind, axes=tuple(sorted(along)), origin=step.origin)


def _instructions(step: ComputeStep) -> tuple[Instruction, ...]:
    """Return the instructions of an operation; none if it has no equivalent."""
    type, dtype = step.op.type, step.inputs[0].dtype
    tables = [COMPARISONS, LOGIC if dtype == BOOL else ARITHMETIC if dtype in INTEGERS else {}]
    for table in tables:
        if type in table:
            opcode, *then = table[type]
            return Instruction(opcode, (0, 1)), *(Instruction(name, (2,)) for name in then)
    if type in SWAPPED:
        return (Instruction(SWAPPED[type], (1, 0)),)
    match type:
        case "Select":
            return (Instruction("select", (0, 1, 2)),)
        case "LogicalNot" | "BitwiseNot" if dtype == BOOL:
            return (Instruction(NOT, (0,)),)
        case "IsNaN":
            return Instruction("equal", (0, 0)), Instruction(NOT, (1,))
        case "Convert" | "ConvertLike":
            return _conversion(dtype, step.output.dtype) if step.types[0].element.bits >= 8 else ()
        case _:
            return ()


def _of_integers(step: ComputeStep) -> tuple[tuple[Instruction, ...], tuple[int, ...]]:
    """Return the instructions of an operation on integers, and the numbers that are its operands after the inputs."""
    known, limits = step.op.attributes, np.iinfo(step.inputs[0].dtype)
    match step.op.type:
        case "Negative":
            return (Instruction("negative", (0,)),), ()
        case "Abs":
            return (Instruction("negative", (0,)), Instruction("maximum", (0, 1))), ()
        case "Sign":
            return _bounded(-1, 1)
        case "ReLU":
            return _bounded(0, int(limits.max))
        case "Clamp":
            return _bounded(whole(known["min"], math.ceil, limits), whole(known["max"], math.floor, limits))
        case "BitwiseNot":
            return (Instruction("bit_xor", (0, 1)),), (-1,)
        case "SquaredDifference":
            return (Instruction("subtract", (0, 1)), Instruction("multiply", (2, 2))), ()
        case "Divide" if known["m_pythondiv"] and _is_positive(step.inputs[1]):
            return (Instruction("divide", (0, 1)),), ()
        case "Mod" if _is_positive(step.inputs[1]):
            return (Instruction("remainder", (0, 1)),), ()
        case "FloorMod" if _is_positive(step.inputs[1]):
            floored = Instruction("divide", (0, 1)), Instruction("multiply", (2, 1)), Instruction("subtract", (0, 3))
            return floored, ()
        case _:
            return (), ()


def _bounded(low: int, high: int) -> tuple[tuple[Instruction, ...], tuple[int, ...]]:
    """Return the instructions that clamp to two numbers, and these numbers."""
    return (Instruction("maximum", (0, 1)), Instruction("minimum", (3, 2))), (low, high)


def _is_positive(divisor: Value) -> bool:
    """True for a constant without zeros and negative numbers, for which a quotient cannot overflow."""
    return divisor.constant is not None and bool((divisor.constant > 0).all())


def _conversion(dtype: np.dtype[np.generic], to: np.dtype[np.generic]) -> tuple[Instruction, ...]:
    """Return the instructions of a conversion between different types. Bytes are the low bits of an i32."""
    if dtype == to:
        return ()
    if dtype in (F32, *BYTES) and to in BYTES:
        return Instruction("convert", (0,), dtype=I32), Instruction("convert", (1,), dtype=to)
    return (Instruction("nonzero", (0,)) if to == BOOL else Instruction("convert", (0,), dtype=to),)

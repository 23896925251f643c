"""Late constants: values that depend on shapes alone, such as positions and masks of a length.

Static planning folds them. A traced plan computes them when a shape is bound, not in each inference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from irload.core.op import evaluate, is_builtin
from irload.core.size import has_sizes, hint
from irload.core.tensor import Array
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ComputeStep
from irload.plan.ir.steps.movement import ViewStep

LARGEST = 1 << 16
"""Bytes, at the traced shape, of the largest late constant: every shape that is bound holds one."""


def take_late(program: Program) -> list[Step]:
    """Remove the steps that compute late constants, and return them in order. Their results become constants."""
    made: list[Step] = []
    for step in program.steps:
        if isinstance(step, ViewStep | ComputeStep) and _is_late(step, program):
            program.replace([step], [])
            made.append(step)
            for value in step.outputs:
                value.source = Constant(_unknown, value.shape, value.dtype)
    return made


def _is_late(step: Step, program: Program) -> bool:
    if isinstance(step, ComputeStep):
        op = step.op
        if not is_builtin(op) or not op.folds or op.signature.compute_context or step.has_effect:
            return False
    small = all(hint(v.nbytes) <= LARGEST and v not in program.returned for v in step.outputs)
    return small and all(v.is_constant for v in step.inputs)


def _unknown() -> NoReturn:
    raise TypeError("the value depends on the shapes of the inputs")


def is_symbolic(value: Value) -> bool:
    """True for a constant that consists of sizes."""
    return value.source is not None and value.source.held and has_sizes(value.source.array)


def computed(step: Step, concrete: Step, arrays: Mapping[Value, Array]) -> list[Array]:
    """The results of a step on constants. `concrete`: the step at one shape; `arrays`: the late constants there."""
    inputs = [arrays[v] if v in arrays else _constant(v) for v in step.inputs]
    if isinstance(concrete, ComputeStep):
        return [a.copy() for a in evaluate(concrete.op, inputs, concrete.types)]
    (source,), view = inputs, concrete.view
    if view is None:
        raise AssertionError("only views and computations are late")
    match view.kind:
        case "reshape":
            return [source.reshape(view.axes).copy()]
        case "transpose":
            return [source.transpose(view.axes).copy()]
        case "broadcast":
            return [np.broadcast_to(source, view.axes).copy()]
        case "slice":
            return [source[tuple(map(_slice, view.ranges))].copy()]


def _slice(taken: tuple[int, int, int]) -> slice:
    """The slice of these positions: the first one, how many, and their distance."""
    start, count, step = taken
    stop = start + count * step
    return slice(start, None if stop < 0 else stop, step) if count else slice(0, 0)


def _constant(value: Value) -> Array:
    if value.source is None:
        raise AssertionError("a late constant depends on a value that is not constant")
    return value.source.array

"""Checks shared by the steps. Each raises PlanInvalid with the expected and the actual value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.plan.ir.expression import Expression
from irload.plan.ir.program import PlanInvalid, Step, Value


def equal(subject: str, actual: object, expected: object) -> None:
    """Check that two descriptions are equal; `subject` names the property in the message."""
    if actual != expected:
        raise PlanInvalid(f"{subject} is {actual}, expected {expected}")


def counts(step: Step, inputs: int, outputs: int = 1) -> None:
    """Check the number of inputs and outputs."""
    equal("the number of inputs", len(step.inputs), inputs)
    equal("the number of outputs", len(step.outputs), outputs)


def f32(*values: Value) -> None:
    """Check that the values are f32. They may be stored in another type, which their layout states."""
    for value in values:
        equal(f"the dtype of {value}", value.dtype, np.dtype(np.float32))


def constant(weights: Value) -> None:
    """Check that weights are constant."""
    if not weights.is_constant:
        raise PlanInvalid("the weights are not constant")


def like(value: Value, other: Value) -> None:
    """Check that a value has the dtype and shape of another one."""
    equal("the dtype", value.dtype, other.dtype)
    equal("the shape", value.shape, other.shape)


def broadcasts(value: Value, shape: tuple[int, ...]) -> None:
    """Check that a value broadcasts to a shape."""
    equal(f"the broadcast shape of {value} and the output", np.broadcast_shapes(value.shape, shape), shape)


def lengths(step: Step, names: Sequence[str], count: int) -> None:
    """Check that these fields have one number per axis."""
    for name in names:
        equal(f"the number of {name}", len(getattr(step, name)), count)


def expression(evaluated: Expression, first: Sequence[Value], rest: Sequence[Value], outputs: Sequence[Value]) -> None:
    """Check that instructions exist, operands broadcast to the outputs, and results have the types of the outputs."""
    equal("the number of operands of the expression", evaluated.operands, len(first) + len(rest))
    equal("the number of results", len(evaluated.result_registers), len(outputs))
    if len(evaluated.results) == 1:
        raise PlanInvalid(f"results are {evaluated.results}, expected none: a sole result is the last register")
    types = evaluated.types([v.dtype for v in (*first, *rest)])
    for register, output in zip(evaluated.result_registers, outputs, strict=True):
        equal("the shape", output.shape, outputs[0].shape)
        equal("the dtype", output.dtype, types[register])
    for value in rest:
        broadcasts(value, outputs[0].shape)

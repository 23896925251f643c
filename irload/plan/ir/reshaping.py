"""Values in another shape or order of axes, for lowerings and passes."""

from __future__ import annotations

from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ReshapeStep, TransposeStep


def reshaped(value: Value, shape: tuple[int, ...], steps: list[Step], origin: tuple[Node, ...] = ()) -> Value:
    """Return the value in another shape, by a step that is appended; a constant is reshaped immediately."""
    if value.constant is not None:
        return Value.of(value.constant.reshape(shape), value.name)
    result = value.like(shape)
    steps.append(ReshapeStep([value], [result], origin=origin))
    return result


def transposed(value: Value, order: tuple[int, ...], steps: list[Step], origin: tuple[Node, ...] = ()) -> Value:
    """Return the value with permuted axes, by a step that is appended."""
    result = value.like(tuple(value.shape[k] for k in order))
    steps.append(TransposeStep([value], [result], order=order, origin=origin))
    return result

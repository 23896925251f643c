"""Transposes after elementwise work: f(Transpose(x), c) → Transpose(f(x, cᵀ)), where x is a fresh result.

So the work becomes the epilogue of a Conv or MatMul. Reshapes are passed likewise by what takes no second operand.
The views themselves cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import Conv, ConvTranspose, Elementwise, Pool, Reshape, Transpose, ViewOp, WithEpilogue


def sink_transposes(program: Program) -> None:
    """Move every Elementwise before the views through which it takes a fresh result."""
    producers = program.producers()
    moved: set[Step] = set()
    for step in program.steps:
        if not isinstance(step, Elementwise) or len(step.outputs) > 1:
            continue
        for value in step.inputs:
            views = _views_of(program, producers, value, moved)
            steps = _swapped(step, value, views, producers) if views else None
            if steps is not None:
                program.replace([*views, step], steps)
                producers.update((s.output, s) for s in steps)
                moved.update(s for s in steps if isinstance(s, Elementwise))
                break


def _views_of(program: Program, producers: dict[Value, Step], value: Value, moved: set[Step]) -> list[ViewOp]:
    """The transposes and reshapes, first to last, through which a value is a fresh result that nothing else takes."""
    views: list[ViewOp] = []
    at = value
    while isinstance(view := producers.get(at), Transpose | Reshape) and program.sole_consumer(at) is not None:
        views.insert(0, view)
        at = view.inputs[0]
    fresh = isinstance(producers.get(at), WithEpilogue) or producers.get(at) in moved
    return views if fresh and program.sole_consumer(at) is not None else []


def _swapped(
    step: Elementwise, value: Value, views: Sequence[ViewOp], producers: dict[Value, Step]
) -> list[Step] | None:
    """The Elementwise on what is viewed, then the same views. None where another operand has no such view."""
    base = views[0].inputs[0]
    if value.shape != step.output.shape or step.inputs.count(value) > 1:
        return None
    order = _order(views)
    steps: list[Step] = []
    inputs: list[Value] = []
    for other in step.inputs:
        seen = base if other is value else _seen(other, order, len(base.shape), producers, steps)
        if seen is None:
            return None
        inputs.append(seen)
    result = Value(base.shape, step.output.dtype, name=step.output.name)
    steps.append(Elementwise(inputs, [result], expression=step.expression, origin=step.origin))
    for view in views:
        again = copy(view)
        last = view is views[-1]
        out = step.output if last else Value(view.output.shape, view.output.dtype, name=view.output.name)
        again.inputs, again.outputs = [result, *view.inputs[1:]], [out]
        steps.append(again)
        result = out
    return steps


def _order(views: Sequence[ViewOp]) -> tuple[int, ...] | None:
    """The transpose that the views are together, None with a reshape among them."""
    order: tuple[int, ...] | None = None
    for view in views:
        if not isinstance(view, Transpose):
            return None
        order = view.order if order is None else tuple(order[k] for k in view.order)
    return order


def _seen(
    other: Value, order: tuple[int, ...] | None, rank: int, producers: dict[Value, Step], steps: list[Step]
) -> Value | None:
    """Another operand as it is before the transpose, None where that would be no use."""
    if other.size == 1 and len(other.shape) <= rank:
        return other
    if order is None:
        return None
    inverse = tuple(order.index(k) for k in range(rank))
    if other.constant is not None:
        wide = other.constant.reshape((1,) * (rank - other.constant.ndim) + other.constant.shape)
        array = np.ascontiguousarray(wide.transpose(inverse))
        return Value.of(array, other.name)
    producer = producers.get(other)
    if isinstance(producer, Transpose) and producer.order == order:
        return producer.inputs[0]
    if isinstance(producer, Conv | ConvTranspose | Pool) and order == (0, rank - 1, *range(1, rank - 1)):
        turned = Value(tuple(other.shape[k] for k in inverse), other.dtype, name=other.name)
        steps.append(Transpose([other], [turned], order=inverse))
        return turned
    return None

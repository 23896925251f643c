"""Move Transposes after elementwise steps: f(Transpose(x), c) → Transpose(f(x, cᵀ)), if a step computes x.

The elementwise step can then become the epilogue of a Conv or MatMul. A Reshape is also moved, if all other operands
of f have one element. Views take no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from irload.plan.ir.program import Producers, Program, Step, Value
from irload.plan.ir.reshaping import transposed
from irload.plan.ir.steps import ElementwiseStep, ReshapeStep, TransposeStep, ViewStep, WithEpilogue


def sink_transposes(program: Program) -> None:
    """Move every Elementwise before the views between it and the step that computes its input."""
    producers = program.producers()
    moved: set[Step] = set()
    for step in program.steps:
        if not isinstance(step, ElementwiseStep) or len(step.outputs) > 1:
            continue
        for value in step.inputs:
            views = _views_of(program, producers, value, moved)
            steps = _swapped(step, value, views, producers) if views else None
            if steps is not None:
                program.replace([*views, step], steps)
                producers.update((s.output, s) for s in steps)
                moved.update(s for s in steps if isinstance(s, ElementwiseStep))
                break


def _views_of(program: Program, producers: Producers, value: Value, moved: set[Step]) -> list[ViewStep]:
    """Return the views, first to last, between a value and the step that computes it; empty unless the move is useful.

    The move is useful if that step can have an epilogue, or was itself moved, and no other step reads the views.
    """
    views: list[ViewStep] = []
    at = value
    while isinstance(view := producers.get(at), TransposeStep | ReshapeStep) and program.sole_consumer(at) is not None:
        views.insert(0, view)
        at = view.inputs[0]
    fresh = isinstance(producers.get(at), WithEpilogue) or producers.get(at) in moved
    return views if fresh and program.sole_consumer(at) is not None else []


def _swapped(step: ElementwiseStep, value: Value, views: Sequence[ViewStep], producers: Producers) -> list[Step] | None:
    """Return the Elementwise followed by the views; None if another operand has no equivalent before the views."""
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
    result = step.output.like(base.shape)
    steps.append(ElementwiseStep(inputs, [result], expression=step.expression, origin=step.origin))
    for view in views:
        last = view is views[-1]
        out = step.output if last else view.output.like()
        steps.append(replace(view, inputs=[result], outputs=[out]))
        result = out
    return steps


def _order(views: Sequence[ViewStep]) -> tuple[int, ...] | None:
    """Return the composition of the transposes, or None if there is a reshape."""
    order: tuple[int, ...] | None = None
    for view in views:
        if not isinstance(view, TransposeStep):
            return None
        order = view.order if order is None else tuple(order[k] for k in view.order)
    return order


def _seen(
    other: Value, order: tuple[int, ...] | None, rank: int, producers: Producers, steps: list[Step]
) -> Value | None:
    """Return another operand in the axis order before the transpose, or None if the rewrite would not be faster."""
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
    if isinstance(producer, TransposeStep) and producer.order == order:
        return producer.inputs[0]
    if producer is not None and producer.prefers_channels_last and order == (0, rank - 1, *range(1, rank - 1)):
        return transposed(other, inverse, steps)
    return None

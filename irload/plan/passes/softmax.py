"""Match a softmax that is written out: exp(x) / sum(exp(x)) → Softmax(x), and the same of x − max(x).

The quotient may be a product with the sum to the power −1, and the difference a sum with −max(x): early converters
write both. Sum and maximum are along one axis. OpenVINO replaces the same patterns, also if other layers read the
exponentials or their sum. Softmax is finite where exponentials overflow, or all of them underflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import TypeGuard

from irload.plan.ir.expression import ADD, MULTIPLY, NEGATIONS, SUBTRACT, Expression, expression_of
from irload.plan.ir.program import Producers, Program, Step, Value, origin_of
from irload.plan.ir.steps import ElementwiseStep, ReduceStep, ReshapeStep, SoftmaxStep

EXP, DIVIDE, RECIPROCAL = expression_of("exp"), expression_of("divide"), expression_of("power_number", -1.0)


def recognise_softmax(program: Program) -> None:
    """Replace each quotient of this form, and the steps whose results only the quotient reads."""
    producers = program.producers()
    for quotient in program.steps:
        for exponentials, sums, steps in _pairs(producers, quotient, DIVIDE, MULTIPLY, (RECIPROCAL,)):
            exponential = producers.get(exponentials)
            total = _reduction(producers, sums, exponentials.shape, steps)
            if not _is(exponential, EXP) or total is None or total.inputs[0] is not exponentials:
                continue
            if total.kind != "sum" or len(total.axes) != 1:
                continue
            steps.append(exponential)
            x = _argument(producers, exponential.inputs[0], total.axes, steps)
            if x is not None:
                (axis,) = total.axes
                softmax = SoftmaxStep([x], quotient.outputs, axis=axis, origin=origin_of(reversed(steps)))
                program.replace(_unread(program, steps), [softmax])
                break


def _argument(producers: Producers, value: Value, axes: tuple[int, ...], steps: list[Step]) -> Value | None:
    """Return x if the value is x − max(x) along `axes`, else the value. The steps are appended to `steps`.

    None if the maximum of x is along other axes: OpenVINO computes these layers one by one.
    """
    for x, maxima, difference in _pairs(producers, producers.get(value), SUBTRACT, ADD, NEGATIONS):
        largest = _reduction(producers, maxima, x.shape, difference)
        if largest is not None and largest.kind == "max" and largest.inputs[0] is x:
            steps += difference
            return x if largest.axes == axes else None
    return value


def _pairs(
    producers: Producers, step: Step | None, direct: Expression, joined: Expression, inverses: tuple[Expression, ...]
) -> Iterator[tuple[Value, Value, list[Step]]]:
    """Yield a and b of direct(a, b), or of joined(a, inverse(b)) in either order, and the steps, the last one first."""
    if _is(step, direct):
        a, b = step.inputs
        yield a, b, [step]
    if _is(step, joined):
        for a, inverse in permutations(step.inputs):
            inverted = producers.get(inverse)
            if _is(inverted, *inverses):
                yield a, inverted.inputs[0], [step, inverted]


def _reduction(producers: Producers, value: Value, shape: tuple[int, ...], steps: list[Step]) -> ReduceStep | None:
    """Return the reduction whose results the value has, if they broadcast along the axes that were reduced.

    `shape`: the shape of the data. The reduction and Reshapes after it are appended to `steps`, the last one first.
    """
    step = producers.get(value)
    while isinstance(step, ReshapeStep):
        steps.append(step)
        step = producers.get(step.inputs[0])
    if not isinstance(step, ReduceStep):
        return None
    steps.append(step)
    kept = tuple(1 if k in step.axes else n for k, n in enumerate(shape))
    return step if (1,) * (len(shape) - len(value.shape)) + value.shape == kept else None


def _is(step: Step | None, *expressions: Expression) -> TypeGuard[ElementwiseStep]:
    """True for an Elementwise with one of these expressions."""
    return isinstance(step, ElementwiseStep) and step.expression in expressions


def _unread(program: Program, steps: list[Step]) -> list[Step]:
    """Return the first step, and the following ones whose results only the returned steps read."""
    unread = steps[:1]
    for step in steps[1:]:
        if step.output not in program.returned and all(s in unread for s in program.consumers(step.output)):
            unread.append(step)
    return unread

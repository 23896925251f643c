"""Progressions: positions 0, 1, 2, … of symbolic length, by which exporters build the mask of a decoder.

A Gather by a progression becomes a slice. A comparison that holds for all positions at every shape, such as that a
token attends to all previous ones, is removed from a conjunction. Otherwise NumPy would compute both per token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irload.core.op import is_builtin
from irload.core.size import alike, is_size
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ComputeStep, GatherStep, ReshapeStep
from irload.plan.ir.steps.movement import ViewStep
from irload.plan.lowering.values import sliced
from irload.record import record

LARGEST = 1 << 30
"""The largest magnitude of a constant that is added to positions or compared with them."""


@record(eq=False)
class Interval:
    """The least and the greatest of the integers in a value. `counts`: they are low, low + 1, …, high in order."""

    low: int
    high: int
    counts: bool

    def plus(self, other: Interval) -> Interval:
        """Return the interval of sums."""
        single = alike(self.low, self.high) or alike(other.low, other.high)
        return Interval(self.low + other.low, self.high + other.high, single and (self.counts or other.counts))


_HOLDS: Mapping[str, Callable[[Interval, Interval], Any]] = {
    "Less": lambda a, b: a.high - b.low + 1,
    "LessEqual": lambda a, b: a.high - b.low,
    "Greater": lambda a, b: b.high - a.low + 1,
    "GreaterEqual": lambda a, b: b.high - a.low,
}
"""By comparison, a size that is at most 0 if the comparison holds for all elements."""
_CONJUNCTIONS = ("BitwiseAnd", "LogicalAnd")


def simplify_progressions(program: Program) -> None:
    """Replace Gathers by progressions, and conjunctions with comparisons that hold at every shape, by views."""
    intervals: dict[Value, Interval] = {}
    true: set[Value] = set()
    for step in program.steps:
        if isinstance(step, GatherStep):
            _replace_gather(program, step, intervals.get(step.inputs[1]))
        elif isinstance(step, ViewStep):
            source = step.inputs[0]
            if source in true or _is_true(source):
                true.add(step.output)
            interval = intervals.get(source)
            if interval is not None:
                is_order_kept = interval.counts and isinstance(step, ReshapeStep)
                intervals[step.output] = Interval(interval.low, interval.high, is_order_kept)
        elif isinstance(step, ComputeStep) and is_builtin(step.op) and len(step.outputs) == 1:
            if step.op.type in _CONJUNCTIONS:
                _replace_conjunction(program, step, true)
            elif step.op.type in _HOLDS:
                a, b = (_interval(value, intervals) for value in step.inputs)
                if a is not None and b is not None and _is_at_most_0(_HOLDS[step.op.type](a, b)):
                    true.add(step.output)
            else:
                result = _result(step, intervals)
                if result is not None:
                    intervals[step.output] = result


def _interval(value: Value, intervals: Mapping[Value, Interval]) -> Interval | None:
    """Return the interval of a value: of a progression, or of a constant of one integer or size.

    None for integers of more than `LARGEST`, since sums in i32 may overflow.
    """
    if value.source is None or not alike(value.size, 1) or value.dtype.kind not in "iu":
        return intervals.get(value)
    (number,) = value.source.array.reshape(-1).tolist()
    return None if not is_size(number) and abs(number) > LARGEST else Interval(number, number, counts=False)


def _result(step: ComputeStep, intervals: Mapping[Value, Interval]) -> Interval | None:
    """Return the interval of a Range in steps of 1, of a conversion to other integers, or of a sum."""
    if step.output.dtype.name not in ("int32", "int64"):
        return None
    operands = [_interval(value, intervals) for value in step.inputs]
    match step.op.type, operands:
        case "Range", [Interval(low=start), _, Interval(low=1)]:
            return Interval(start, start + step.output.shape[0] - 1, counts=True)
        case "Convert", [Interval() as interval]:
            return interval
        case "Add", [Interval() as a, Interval() as b]:
            return a.plus(b)
        case _:
            return None


def _replace_gather(program: Program, step: GatherStep, interval: Interval | None) -> None:
    """Replace a Gather by a slice, if its indices are consecutive and within the data."""
    if interval is None or not interval.counts or step.shared or step.widens:
        return
    (data, indices), axis = step.inputs, step.axis
    count, size = indices.size, data.shape[axis]
    if not interval.low >= 0 or not interval.low + count <= size:
        return
    steps: list[Step] = []
    if count != size:
        part = sliced(data, axis, slice(interval.low, interval.low + count))
        part.origin = step.origin
        steps.append(part)
        data = part.output
    program.replace([step], [*steps, ReshapeStep([data], step.outputs, origin=step.origin)])


def _replace_conjunction(program: Program, step: ComputeStep, true: set[Value]) -> None:
    """Replace a conjunction in which one operand is true everywhere by a view of the other."""
    for other, value in (step.inputs, step.inputs[::-1]):
        if value in true or _is_true(value):
            if other in true or _is_true(other):
                true.add(step.output)
            if alike(other.size, step.output.size):
                program.replace([step], [ReshapeStep([other], step.outputs, origin=step.origin)])
                return


def _is_true(value: Value) -> bool:
    """True for the constant True."""
    if value.source is None or value.dtype != np.bool_ or not alike(value.size, 1):
        return False
    return bool(value.source.array.all())


def _is_at_most_0(size: Any) -> bool:
    """True if a size is at most 0 at every shape, without a guard."""
    high = size.bounds[1] if is_size(size) else size
    return high is not None and high <= 0

"""Late constants: values that depend on shapes alone, such as positions and masks of a length.

Static planning folds them. A traced plan computes them when a shape is bound, not in each inference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NoReturn

import numpy as np

from irload.core.op import computes_directly, evaluate, is_builtin
from irload.core.size import has_sizes, hint
from irload.core.tensor import Array
from irload.plan.ir.building import Build
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ComputeStep
from irload.plan.ir.steps.movement import ViewStep
from irload.plan.ir.strides import View
from irload.plan.traced.numbers import Dependents, Numbers
from irload.record import record

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


Held = Constant | Array
"""A late constant: a constant if steps read it, an array if only other late constants depend on it."""
Compute = Callable[[Sequence[int], Mapping[Value, Held]], Array]


@record(eq=False)
class LateConstant:
    """A late constant. `is_read`: whether steps read it.

    `compute`: its array from the values of the sizes and the late constants before it.
    """

    value: Value
    is_read: bool
    compute: Compute

    def at(self, values: Sequence[int], late: Mapping[Value, Held]) -> Held:
        """The constant for values of the sizes and the late constants before it."""
        array, dtype = self.compute(values, late), self.value.dtype
        return Constant.of(np.array(array, dtype, order="C")) if self.is_read else np.asarray(array, dtype)


class LateConstants:
    """The late constants of a plan, in order: `symbolic`, which consist of sizes, and the results of `steps`.

    `read`: the values that steps of the plan read.
    """

    def __init__(
        self, symbolic: Sequence[Value], steps: Sequence[Step], numbers: Numbers, read: AbstractSet[Value]
    ) -> None:
        self._numbers = numbers
        self._read = read
        self.sizes: dict[Value, frozenset[int]] = {}
        """The sizes on which each depends."""
        self._parts = Dependents[LateConstant]()
        for value in symbolic:
            if value.source is not None:
                parts = [*value.source.array.flat], value.source.array.shape
                self._add(value, numbers.sizes(parts), _of_sizes(value, numbers.builder(parts)))
        for step in steps:
            own = numbers.sizes([step.types, step.view] if isinstance(step, ComputeStep) else step.view)
            own = own.union(*(self.sizes.get(v, frozenset()) for v in step.inputs))
            for k, value in enumerate(step.outputs):
                self._add(value, own, self._of_step(step, k))

    def at(
        self, values: Sequence[int], before: Mapping[Value, Held] | None, changed: AbstractSet[int]
    ) -> dict[Value, Held]:
        """The constants for values of the sizes; constants of `before` without changed sizes are kept."""
        found = dict(before or {})
        for part in self._parts.items if before is None else self._parts.of(changed):
            found[part.value] = part.at(values, found)
        return found

    def _add(self, value: Value, sizes: frozenset[int], compute: Compute) -> None:
        self.sizes[value] = sizes
        self._parts.add(LateConstant(value, value in self._read, compute), sizes)

    def _of_step(self, step: Step, index: int) -> Compute:
        """The function for one of the results of a step."""
        if not isinstance(step, ComputeStep):
            view, (source,) = self._numbers.builder(step.view), step.inputs
            return lambda values, late: _viewed(_input(source, late), view(values))
        if len(step.outputs) == 1 and computes_directly(step.op, [v.dtype for v in (*step.inputs, *step.outputs)]):
            compute: Callable[..., Array] = step.op.compute  # pyright: ignore[reportAssignmentType] - one output
            inputs = step.inputs
            return lambda values, late: compute(*[_input(v, late) for v in inputs])
        types = self._numbers.builder(step.types)

        def evaluated(values: Sequence[int], late: Mapping[Value, Held]) -> Array:
            return evaluate(step.op, [_input(v, late) for v in step.inputs], types(values))[index]

        return evaluated


def _of_sizes(value: Value, parts: Build) -> Compute:
    def array(values: Sequence[int], late: Mapping[Value, Held]) -> Array:
        numbers, shape = parts(values)
        return np.array(numbers, value.dtype).reshape(shape)

    return array


def _input(value: Value, late: Mapping[Value, Held]) -> Array:
    source = late.get(value, value.source)
    if source is None:
        raise AssertionError("a late constant depends on a value that is not constant")
    return source.array if isinstance(source, Constant) else source


def _viewed(source: Array, view: View) -> Array:
    match view.kind:
        case "reshape":
            return source.reshape(view.axes)
        case "transpose":
            return source.transpose(view.axes)
        case "broadcast":
            return np.broadcast_to(source, view.axes)
        case "slice":
            return source[tuple(map(_slice, view.ranges))]


def _slice(taken: tuple[int, int, int]) -> slice:
    """The slice of these positions: the first one, how many, and their distance."""
    start, count, step = taken
    stop = start + count * step
    return slice(start, None if stop < 0 else stop, step) if count else slice(0, 0)

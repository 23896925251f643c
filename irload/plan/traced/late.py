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
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ComputeStep
from irload.plan.ir.steps.movement import ViewStep
from irload.plan.ir.strides import View
from irload.plan.traced.building import Build
from irload.plan.traced.numbers import Numbers
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


@record(eq=False)
class LateConstant:
    """A late constant. `sizes`: the positions of the sizes on which it depends.

    `compute`: its array from the values of the sizes and the late constants before it.
    """

    value: Value
    sizes: frozenset[int]
    compute: Callable[[Sequence[int], Mapping[Value, Constant]], Array]


class LateConstants:
    """The late constants of a plan, in order: `symbolic`, which consist of sizes, and the results of `steps`."""

    def __init__(self, symbolic: Sequence[Value], steps: Sequence[Step], numbers: Numbers) -> None:
        self._numbers = numbers
        self.sizes: dict[Value, frozenset[int]] = {}
        """The sizes on which each depends."""
        self._parts: list[LateConstant] = []
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
        self, values: Sequence[int], before: Mapping[Value, Constant], changed: AbstractSet[int]
    ) -> dict[Value, Constant]:
        """The constants for values of the sizes; constants of `before` without changed sizes are kept."""
        found: dict[Value, Constant] = {}
        for part in self._parts:
            kept = before.get(part.value)
            if kept is None or not part.sizes.isdisjoint(changed):
                kept = Constant.of(part.compute(values, found))
            found[part.value] = kept
        return found

    def _add(
        self, value: Value, sizes: frozenset[int], compute: Callable[[Sequence[int], Mapping[Value, Constant]], Array]
    ) -> None:
        self.sizes[value] = sizes
        self._parts.append(LateConstant(value, sizes, compute))

    def _of_step(self, step: Step, index: int) -> Callable[[Sequence[int], Mapping[Value, Constant]], Array]:
        """The function for one of the results of a step."""
        dtype = step.outputs[index].dtype
        if not isinstance(step, ComputeStep):
            view = self._numbers.builder(step.view)
            return lambda values, late: np.array(_viewed(_input(step.inputs[0], late), view(values)), dtype, order="C")
        if len(step.outputs) == 1 and computes_directly(step.op, [v.dtype for v in (*step.inputs, *step.outputs)]):
            compute = step.op.compute
            return lambda values, late: np.array(compute(*[_input(v, late) for v in step.inputs]), dtype, order="C")
        types = self._numbers.builder(step.types)

        def evaluated(values: Sequence[int], late: Mapping[Value, Constant]) -> Array:
            return evaluate(step.op, [_input(v, late) for v in step.inputs], types(values))[index].copy()

        return evaluated


def _of_sizes(value: Value, parts: Build) -> Callable[[Sequence[int], Mapping[Value, Constant]], Array]:
    def array(values: Sequence[int], late: Mapping[Value, Constant]) -> Array:
        numbers, shape = parts(values)
        return np.array(numbers, value.dtype).reshape(shape)

    return array


def _input(value: Value, late: Mapping[Value, Constant]) -> Array:
    source = late.get(value, value.source)
    if source is None:
        raise AssertionError("a late constant depends on a value that is not constant")
    return source.array


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

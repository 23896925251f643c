"""Late constants: values that depend only on shapes, such as position ids and causal masks.

In static plans they are folded. A traced plan computes them when a shape is bound, not in each inference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import prod
from typing import Any, NoReturn

import numpy as np

from irload.core.op import is_builtin
from irload.core.size import has_sizes, hint, is_size
from irload.core.tensor import Array
from irload.ops.generation.range import Progression
from irload.plan.ir.building import Build
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ComputeStep, ReshapeStep
from irload.plan.ir.steps.movement import ViewStep
from irload.plan.lowering.shape_functions import LARGEST
from irload.plan.passes.dead import live_steps
from irload.plan.traced.functions import Compute, functions_of, viewed
from irload.plan.traced.numbers import Dependents, Numbers
from irload.record import record

ARITHMETIC = ("Add", "Multiply", "Range", "Subtract")
"""Operations that compute arrays of sizes from arrays of sizes, if their shapes are known."""
FEW = 8
"""Maximum number of elements of an array of sizes."""


def split_late(program: Program) -> list[Step]:
    """Remove the steps that compute late constants, and return them in order. Their results become constants."""
    producers: dict[Value, Step] = {}
    for step in program.steps:
        if isinstance(step, ViewStep | ComputeStep) and _is_late(step, program):
            program.replace([step], [])
            folded = _folded(step)
            if folded is not None:
                step.output.source = Constant.of(folded)
                continue
            before = producers.get(step.inputs[0]) if isinstance(step, ReshapeStep) else None
            producer = ReshapeStep(before.inputs, step.outputs) if isinstance(before, ReshapeStep) else step
            for value in step.outputs:
                producers[value] = producer
                value.source = Constant(unknown, value.shape, value.dtype)
    return live_steps(list(dict.fromkeys(producers.values())), (v for step in program.steps for v in step.inputs))


def _folded(step: ViewStep | ComputeStep) -> Array | None:
    """Return the result as an array of sizes; None if it has more than FEW elements, or needs other operations.

    Views and the operations in ARITHMETIC can be computed on sizes.
    """
    sources = [v.source.array for v in step.inputs if v.source is not None and v.source.held]
    shape = step.outputs[0].shape
    if len(sources) < len(step.inputs) or not any(map(has_sizes, sources)) or any(map(is_size, shape)):
        return None
    if prod(shape) > FEW:
        return None
    if isinstance(step, ViewStep):
        array = viewed(sources[0], step.view)
    elif not is_builtin(step.op) or step.op.type not in ARITHMETIC:
        return None
    elif any(source.dtype.kind == "f" for source in sources):
        return None  # sums of sizes and floats are not polynomials of sizes
    else:
        compute: Any = step.op.progression if isinstance(step.op, Progression) else step.op.compute
        array = compute(*sources)
    return array if has_sizes(array) else array.astype(step.outputs[0].dtype)


def _is_late(step: ViewStep | ComputeStep, program: Program) -> bool:
    small = all(hint(v.nbytes) <= LARGEST and v not in program.returned for v in step.outputs)
    known = all(v.is_constant for v in step.inputs)
    return small and known and (isinstance(step, ViewStep) or step.is_function)


def unknown() -> NoReturn:
    """Raise TypeError: the `make` function of constants whose values are computed when a shape is bound."""
    raise TypeError("the value depends on the shapes of the inputs")


def is_symbolic(value: Value) -> bool:
    """True for a constant that contains symbolic sizes."""
    return value.source is not None and value.source.held and has_sizes(value.source.array)


@record(eq=False)
class Late:
    """The late constants at one shape. `arrays` has all of them, `constants` only the ones that steps read."""

    arrays: dict[Value, Array]
    constants: dict[Value, Constant]


class LateConstants:
    """The late constants of a plan in order: arrays of sizes (`symbolic`), then the results of `steps`.

    `read`: the late constants that steps of the plan read.
    """

    def __init__(
        self, symbolic: Sequence[Value], steps: Sequence[Step], numbers: Numbers, read: AbstractSet[Value]
    ) -> None:
        self._read = read
        self.sizes: dict[Value, frozenset[int]] = {}
        """The positions of the sizes on which each late constant depends."""
        self._parts = Dependents[tuple[Value, Compute]]()
        for value in symbolic:
            if value.source is not None:
                parts = [*value.source.array.flat], value.source.array.shape
                self._add(value, numbers.sizes(parts), _of_sizes(value, numbers.builder(parts)))
        for step in steps:
            sizes = numbers.sizes([step.types, step.view] if isinstance(step, ComputeStep) else step.view)
            sizes = sizes.union(*(self.sizes.get(v, frozenset()) for v in step.inputs))
            known = self.sizes.keys() | set(step.outputs)
            for value, compute in zip(step.outputs, functions_of(step, numbers, known), strict=True):
                self._add(value, sizes, compute)

    def at(self, values: Sequence[int], before: Late | None, changed: AbstractSet[int]) -> Late:
        """Return the constants for values of the sizes. Constants of `before` are reused unless their sizes changed."""
        parts = self._parts.items if before is None else self._parts.of(changed)
        if before is not None and not parts:
            return before
        arrays = {} if before is None else before.arrays.copy()
        constants = {} if before is None else before.constants.copy()
        with np.errstate(all="ignore"):
            for value, compute in parts:
                array = arrays[value] = np.asarray(compute(values, arrays), value.dtype)
                if value in self._read:
                    constants[value] = Constant.of(np.array(array, order="C"))
        return Late(arrays, constants)

    def _add(self, value: Value, sizes: frozenset[int], compute: Compute) -> None:
        self.sizes[value] = sizes
        self._parts.add((value, compute), sizes)


def _of_sizes(value: Value, parts: Build) -> Compute:
    def array(values: Sequence[int], arrays: Mapping[Value, Array]) -> Array:
        numbers, shape = parts(values)
        return np.array(numbers, value.dtype).reshape(shape)

    return array

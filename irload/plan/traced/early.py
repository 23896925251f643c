"""Early steps: conversions of ids and masks, which NumPy computes before the kernels of a plan run.

Their results are inputs of the plan. They run on arrays of any shape, so they need no binding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irload.core.size import alike, hint
from irload.core.tensor import Array
from irload.errors import IRError
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import BroadcastStep, ComputeStep, GatherStep, ReshapeStep
from irload.plan.ir.steps.movement import ViewStep
from irload.plan.lowering.shape_functions import LARGEST
from irload.plan.passes.dead import live_steps
from irload.plan.traced.functions import computes_alone, functions_of
from irload.plan.traced.growth import is_variable
from irload.plan.traced.numbers import Numbers


def split_early(program: Program) -> list[Step]:
    """Remove the early steps of a program and return them in order. Their results become inputs of the program."""
    known = {v for v in program.inputs if v.dtype.kind in "biu" and not is_variable(v)}
    results: dict[Value, None] = {}
    reshaped: dict[Value, Value] = {}
    steps: list[Step] = []
    for step in program.steps:
        if _is_early(step, program, known):
            program.replace([step], [])
            if _is_reshape(step):
                source = step.inputs[0]
                reshaped[step.output] = source = reshaped.get(source, source)
                step = ReshapeStep([source], step.outputs, origin=step.origin)
            steps.append(step)
            known.update(step.outputs)
            results.update(dict.fromkeys(step.outputs))
    consumed = [v for v in results if program.consumers(v)]
    steps = live_steps(steps, consumed, lambda step: not isinstance(step, ViewStep))  # others may raise errors
    read = {v for step in steps for v in step.inputs}
    needed = [v for v in program.inputs if program.consumers(v) or v in program.returned or v not in read]
    program.inputs = (*needed, *consumed)
    return steps


def _is_reshape(step: Step) -> bool:
    """True for a view of all elements in order."""
    if isinstance(step, BroadcastStep):
        return alike(step.output.size, step.inputs[0].size)
    return isinstance(step, ReshapeStep)


def _is_early(step: Step, program: Program, known: set[Value]) -> bool:
    """True for steps on `known` values and constants whose outputs are small at the traced shape and not returned."""
    if isinstance(step, ComputeStep):
        plain = computes_alone(step) and not step.has_effect
    else:
        gathers = isinstance(step, GatherStep) and not step.shared
        plain = (gathers or isinstance(step, ViewStep)) and step.inputs[0] in known
    small = all(hint(v.nbytes) <= LARGEST and v not in program.returned for v in step.outputs)
    return plain and small and all(v in known or v.is_constant for v in step.inputs)


class EarlySteps:
    """The early steps of a plan, which compute its `inputs` from the caller's arrays `given`."""

    def __init__(
        self,
        steps: Sequence[Step],
        given: Sequence[Value],
        inputs: Sequence[Value],
        numbers: Numbers,
        late: Mapping[Value, object],
    ) -> None:
        self._given, self.inputs = given, inputs
        known = {*late, *given, *(v for step in steps for v in step.outputs)}
        self._parts = [
            (step, value, value.dtype, compute)
            for step in steps
            for value, compute in zip(step.outputs, functions_of(step, numbers, known), strict=True)
        ]

    def at(
        self, arrays: Sequence[Array], sizes: Sequence[int], late: Mapping[Value, Array], context: Any
    ) -> list[Array]:
        """Return the inputs of the plan for the caller's arrays. Raises the errors of operations.

        `sizes`: the values of all sizes; `late`: the late constants; `context`: the run, which has the model's file.
        """
        known = {**late, **dict(zip(self._given, arrays, strict=True))}
        with np.errstate(all="ignore"):
            for step, value, dtype, compute in self._parts:
                try:
                    known[value] = np.asarray(compute(sizes, known), dtype)
                except IRError as error:
                    file = None if context is None else context.compiled.model.file
                    raise error.at(step.origin[0].where(file)) from error.__cause__
        return [known[value] for value in self.inputs]

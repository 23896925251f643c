"""Shape functions: values that depend only on shapes, such as distances between positions if sizes are symbolic.

The operations compute them with NumPy when a shape is bound. Some integers are computed from floats, such as T5's
buckets of distances. If the float steps became kernels, the kernels and the NumPy steps that read their results would
run in every inference. `replaced` therefore replaces the float steps by their operations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from irload.core.size import has_sizes, hint, is_size
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ComputeStep
from irload.plan.ir.steps.movement import ViewStep

LARGEST = 1 << 16
"""Maximum bytes of a result at the traced shape. Each bound shape stores a copy."""


class ShapeFunctions:
    """The steps of a program that compute shape functions."""

    def __init__(self) -> None:
        self._results: set[Value] = set()
        self._operations: dict[Step, ComputeStep] = {}

    def add(self, step: Step, compute: Callable[[], ComputeStep]) -> None:
        """Record a step if it is a shape function. `compute` returns the equivalent step that calls the operation."""
        known = all(v.is_constant or v in self._results for v in step.inputs)
        if not known or not any(map(self._varies, (*step.inputs, *step.outputs))):
            return
        if any(hint(v.nbytes) > LARGEST for v in step.outputs):
            return
        if not isinstance(step, ViewStep):
            operation = step if isinstance(step, ComputeStep) else compute()
            if not operation.is_function:
                return
            if operation is not step:
                self._operations[step] = operation
        self._results.update(step.outputs)

    def _varies(self, value: Value) -> bool:
        """True if a value or its shape depends on symbols."""
        source = value.source
        varies = source is not None and source.held and has_sizes(source.array)
        return varies or value in self._results or any(map(is_size, value.shape))

    def replaced(self, steps: Sequence[Step], returned: Collection[Value]) -> list[Step]:
        """Replace a recorded step by the step of its operation if a shape function without a kernel reads its results.

        Results in `returned` do not count.
        """
        if not self._operations:
            return list(steps)
        needed: set[Value] = set()
        results: list[Step] = []
        for step in reversed(steps):
            operation = self._operations.get(step)
            if operation is not None and any(v in needed and v not in returned for v in step.outputs):
                operation.origin = step.origin
                step = operation
            computes = isinstance(step, ComputeStep) or any(v in needed for v in step.outputs)
            if computes and all(v in self._results for v in step.outputs):
                needed.update(step.inputs)
            results.append(step)
        return results[::-1]

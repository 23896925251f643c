"""Segments of symbolic steps. Binding another shape selects kernels again only for steps that change."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from irload.options import Options
from irload.plan.backends.base import BoundSizes, Executable, SharedData, StepKernel
from irload.plan.backends.numpy.executable import BoundStep, NumpyExecutable, shared_packing
from irload.plan.backends.numpy.reasons import REASONS
from irload.plan.backends.numpy.selection.compute import computed, is_plain
from irload.plan.backends.numpy.selection.selector import NumpySelector
from irload.plan.ir.program import Step
from irload.plan.ir.steps import ComputeStep
from irload.plan.memory.aliases import Aliases
from irload.system.blas import single_threaded_blas


class PreparedSteps:
    """A segment of symbolic steps on NumPy."""

    def __init__(self, steps: Sequence[Step], aliases: Aliases, options: Options, shared: SharedData) -> None:
        self._steps = [s for s in steps if s.view is None or aliases.alias(s.output) is None]
        self._plain = {s for s in self._steps if isinstance(s, ComputeStep) and is_plain(s)}
        self._options = options
        self._shared = shared

    def bind(self, sizes: BoundSizes, previous: Executable | None) -> Executable:
        """The segment for one shape."""
        before = previous if isinstance(previous, BoundSteps) else None
        if before is not None and not any(map(sizes.changes, self._steps)):
            return before
        return BoundSteps(self._steps, self._plain, sizes, self._options, self._shared, before)


class BoundSteps(NumpyExecutable):
    """A segment bound to one shape."""

    def __init__(
        self,
        steps: Sequence[Step],
        plain: AbstractSet[Step],
        sizes: BoundSizes,
        options: Options,
        shared: SharedData,
        previous: BoundSteps | None,
    ) -> None:
        packs = shared_packing(shared, options).packs
        selector = NumpySelector(sizes.memory, options, packs, tuner=None, run_phases=self._run)
        if previous is not None:
            selector.cell = previous.cell  # the phases of unchanged steps refer to it
            selector.scratch = previous.scratch
        self._threads = options.threads
        with single_threaded_blas:
            parts = [
                self._bound(step, selector, sizes, is_plain=step in plain)
                if previous is None or sizes.changes(step)
                else previous.parts[k]
                for k, step in enumerate(steps)
            ]
        self._finish(selector, parts)

    def _bound(self, step: Step, selector: NumpySelector, sizes: BoundSizes, *, is_plain: bool) -> BoundStep:
        if not isinstance(step, ComputeStep) or not is_plain:
            return self._selected(sizes.step(step), selector)
        selector.direct, selector.held = [], []  # a plain step needs its arrays only, not the concrete step
        inputs, outputs = ([selector.array(sizes.value(v)) for v in side] for side in (step.inputs, step.outputs))
        name, phases = computed(step, inputs, outputs, selector, is_plain=True)
        nbytes = sum(a.nbytes for a in (*inputs, *outputs))
        return BoundStep(StepKernel(step, name, REASONS[name]), phases, 0, nbytes, selector.direct, selector.held)

"""Runs a model twice, layer by layer: with inputs from the other side, and, in the *free run*, with computed inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irload.comparison.sources import AHEAD, Names, Stream
from irload.core.tensor import Array
from irload.errors import IRError
from irload.plan.interpreter import InterpreterRun, RunPart, Scheduler
from irload.plan.schedule import Schedule, ScheduledNode
from irload.runtime.observation import Observe, ObservedRun, Visit, values

__all__ = ["Judge", "PairedRun"]

Judge = Callable[[Visit, Sequence[Array | None], str], tuple[Sequence[Array], Sequence[Array | None]]]
"""Called with each layer that ran, its outputs in the free run, and a fault.

Outputs are None in an iteration of a body that the free run did not execute. The fault is the reason why the layer
cannot run on the other side's values, so that its outputs are from the free run; "" if it can. Returns the outputs for
later layers in this run, and for later layers in the free run.
"""


class PairedRun(ObservedRun):
    """A run that feeds its layers the outputs chosen by a judge, in step with a free run.

    Both runs drop a value after its last use. A layer whose inputs are the same arrays in both runs is computed once.
    The free run of control flow is in a separate thread, which computes layers only as they are requested.
    """

    def __init__(self, compiled: Scheduler, judge: Judge, names: Names) -> None:
        super().__init__(compiled, {}, self._judged, names)
        self._judge = judge
        self._names = names
        self._beside = InterpreterRun(compiled, {})
        self._free: dict[int, Array] = {}
        """By slot: values of the free run that are distinct arrays."""
        self._scheduled: ScheduledNode | None = None
        self._free_inputs: list[Array] = []
        self._bodies: Stream | None = None
        self._fault = ""
        self.free_results: list[Array] = []
        """The results of the free run, once it has ended."""

    def run_nodes(
        self, schedule: Schedule, arrays: Sequence[Array], plan: RunPart | None = None, *, wide: bool
    ) -> tuple[Array, ...]:
        """Execute a schedule in both runs; store the results of the free run."""
        results = super().run_nodes(schedule, arrays, plan, wide=wide)
        if self._scheduled is None:
            self.free_results = [self._free.get(k, r) for k, r in zip(schedule.results, results, strict=True)]
        return results

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run one operation in both runs, and pass the outputs to the judge."""
        if self._scheduled is not None:  # a layer of a body
            return super().run_node(scheduled, inputs)
        free = [self._free.get(slot, array) for slot, array in zip(scheduled.inputs, inputs, strict=True)]
        self._scheduled, self._free_inputs = scheduled, free
        try:
            self._start_bodies(scheduled, free)
            try:
                return super().run_node(scheduled, inputs)
            except IRError as error:
                # Inputs from the other side may be inconsistent with each other: use the inputs of the free run.
                if all(a is b for a, b in zip(free, inputs, strict=True)):
                    raise
                self._fault = error.message
                self._path, self._owner, self._running = "", "", None
                self._end_bodies()
                self._start_bodies(scheduled, free)
                return super().run_node(scheduled, free)
        finally:
            self._scheduled, self._free_inputs, self._fault = None, [], ""
            self._end_bodies()

    def _start_bodies(self, scheduled: ScheduledNode, free: Sequence[Array]) -> None:
        if scheduled.node.op.supplied:
            freely = values(lambda observe: self._run_freely(scheduled, free, observe), (), ahead=AHEAD)
            self._bodies = Stream(freely, lambda _: True)

    def _end_bodies(self) -> None:
        if self._bodies is not None:
            self._bodies.close()
            self._bodies = None

    def _judged(self, visit: Visit) -> Sequence[Array]:
        scheduled = self._scheduled
        if scheduled is None:
            return visit.outputs
        free: Sequence[Array | None] = visit.outputs
        if self._bodies is not None:
            wanted = [(name, visit.owner) for name, _, _ in visit.named()]
            free = [self._bodies.take(name, owner, wanted=lambda _: True) for name, owner in wanted]
        elif any(a is not b for a, b in zip(self._free_inputs, visit.inputs, strict=True)):
            free = self._beside.run_node(scheduled, self._free_inputs)
        here, there = self._judge(visit, free, self._fault)
        if visit.node is scheduled.node:
            self._keep(scheduled, here, there)
        return here

    def _keep(self, scheduled: ScheduledNode, here: Sequence[Array], there: Sequence[Array | None]) -> None:
        """Store the outputs of the free run, and drop values after their last use."""
        tracker = self._beside.tracker
        for slot, array, other in zip(scheduled.outputs, here, there, strict=False):
            if other is not None and other is not array:
                self._free[slot] = other
                tracker.hold(other)
        for slot in scheduled.last_use:
            tracker.release(self._free.pop(slot, None))

    def _run_freely(self, scheduled: ScheduledNode, inputs: Sequence[Array], observe: Observe) -> None:
        ObservedRun(self.compiled, {}, observe, self._names).run_node(scheduled, inputs)

"""One run on what the other side gives, and beside it, layer by layer, the same run on what it gives itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irload.comparison.sources import AHEAD, Names, Stream
from irload.core.tensor import Array
from irload.observation import Observe, ObservedRun, Visit, values
from irload.plan.interpreter import Run, Scheduler
from irload.plan.schedule import ScheduledNode

__all__ = ["Judge", "PairedRun"]

Judge = Callable[[Visit, Sequence[Array | None]], tuple[Sequence[Array], Sequence[Array | None]]]
"""Takes each layer that ran, and its outputs in the free run (None: a pass of a body that was not run freely).

What it returns takes their place: what later layers get in this run, and what they get in the free one.
"""


class PairedRun(ObservedRun):
    """A run whose layers get what a judge puts in the place of outputs, and a free run in step with it.

    Both drop a value after its last use, and a layer that both give the very same arrays runs once. Control flow runs
    freely in a thread, as far as its layers are asked for.
    """

    def __init__(self, compiled: Scheduler, judge: Judge, names: Names) -> None:
        super().__init__(compiled, {}, self._judged, names)
        self._judge = judge
        self._names = names
        self._beside = Run(compiled, {})
        self._free: dict[int, Array] = {}
        """By slot: what the free run has, where that is another array."""
        self._scheduled: ScheduledNode | None = None
        self._given: list[Array] = []
        self._bodies: Stream | None = None

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run one operation on both, and show it."""
        if self._scheduled is not None:  # a layer of a body
            return super().run_node(scheduled, inputs)
        free = [self._free.get(slot, array) for slot, array in zip(scheduled.inputs, inputs, strict=True)]
        self._scheduled, self._given = scheduled, free
        try:
            if scheduled.node.op.supplied:
                freely = values(lambda observe: self._run_freely(scheduled, free, observe), (), ahead=AHEAD)
                self._bodies = Stream(freely, lambda _: True)
            return super().run_node(scheduled, inputs)
        finally:
            self._scheduled, self._given = None, []
            if self._bodies is not None:
                self._bodies.close()
                self._bodies = None

    def _judged(self, visit: Visit) -> Sequence[Array]:
        scheduled = self._scheduled
        if scheduled is None:
            return visit.outputs
        free: Sequence[Array | None] = visit.outputs
        if self._bodies is not None:
            free = [self._bodies.take(name, wanted=lambda _: True) for name, _, _ in visit.named()]
        elif any(a is not b for a, b in zip(self._given, visit.inputs, strict=True)):
            free = self._beside.run_node(scheduled, self._given)
        here, there = self._judge(visit, free)
        if visit.node is scheduled.node:
            self._keep(scheduled, here, there)
        return here

    def _keep(self, scheduled: ScheduledNode, here: Sequence[Array], there: Sequence[Array | None]) -> None:
        """Hold what the free run gave, and drop what it has used for the last time."""
        tracker = self._beside.tracker
        for slot, array, other in zip(scheduled.outputs, here, there, strict=False):
            if other is not None and other is not array:
                self._free[slot] = other
                tracker.hold(other)
        for slot in scheduled.last_use:
            tracker.release(self._free.pop(slot, None))

    def _run_freely(self, scheduled: ScheduledNode, inputs: Sequence[Array], observe: Observe) -> None:
        ObservedRun(self.compiled, {}, observe, self._names).run_node(scheduled, inputs)

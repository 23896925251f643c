"""The body of a loop: iterations with equal shapes use one plan, in whose memory carried values can stay."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from irload.core.subgraph import Subgraph
from irload.core.tensor import Array
from irload.graph import Graph
from irload.plan.accumulators import LoopBody

if TYPE_CHECKING:
    from irload.plan.executor import Executor
    from irload.plan.interpreter import InterpreterRun
    from irload.plan.schedule import Schedule, StaticPart


class HeldBody:
    """Runs the body of a loop in each iteration of a run.

    `carried`: the results that only the next iteration reads. If a plan writes one to the memory of its
    parameter, `run` returns this memory, which the next iteration overwrites.
    """

    def __init__(self, run: InterpreterRun, loop: Subgraph, carried: Collection[int]) -> None:
        self._run, self._body, self._carried = run, loop.body, carried
        self._schedule: Schedule | None = None
        self._part: StaticPart | None = None
        self._plan: Executor | None = None
        self._in_place: dict[int, Array] = {}
        """The carried results that stay in the plan's memory."""

    def run(self, values: Sequence[Array]) -> tuple[Array, ...]:
        """Return the results of the body for one array per parameter."""
        run = self._run
        graph, inputs, schedule = run.scheduled_body(self._body, values)
        if schedule is not self._schedule:
            self.release()
            self._schedule = schedule
            if schedule.is_static and schedule.part is not None and not graph.sinks:
                self._hold(graph, schedule.part)
        outputs = run.outputs
        if self._plan is None:
            results = run.run(schedule, inputs)
        else:
            results = self._plan.run(inputs, run, in_place=self._in_place)
        run.outputs = outputs
        return results

    def release(self) -> None:
        """Give the plan back. Results in its memory become invalid."""
        if self._part is not None and self._plan is not None:
            self._run.compiled.give_back(self._part, self._plan)
        self._part = self._plan = None
        self._in_place = {}

    def _hold(self, graph: Graph, part: StaticPart) -> None:
        self._part, self._plan = part, self._run.compiled.take(part)
        for result, parameter in graph.carried if isinstance(graph, LoopBody) and self._plan.returns_views else ():
            given = self._plan.input_arrays[parameter]
            if result in self._carried and _is_same(given, self._plan.output_arrays[result]):
                self._in_place[result] = given


def _is_same(a: Array, b: Array) -> bool:
    """True if two arrays are the same view of the same memory."""
    if (a.shape, a.strides, a.dtype) != (b.shape, b.strides, b.dtype):
        return False
    return a.__array_interface__["data"] == b.__array_interface__["data"]

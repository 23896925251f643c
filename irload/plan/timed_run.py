"""Runs that measure the time of each layer, and of each step of a body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, cast

from irload.core.subgraph import Body
from irload.core.tensor import Array
from irload.graph import Graph, Node
from irload.plan.interpreter import InterpreterRun, Scheduler
from irload.plan.profile import StepTime, of_interpreted, of_plan
from irload.plan.schedule import ScheduledNode

if TYPE_CHECKING:
    from irload.plan.executor import Executor

__all__ = ["BodyRun", "TimedRun"]


class TimedRun(InterpreterRun):
    """A run that records its steps in `steps`, in execution order. The time of a step includes the bodies it runs."""

    def __init__(self, compiled: Scheduler, variables: dict[str, Array]) -> None:
        super().__init__(compiled, variables)
        self.steps: list[StepTime] = []
        self._within = False
        """True while a step is timed. Steps inside it are not recorded."""

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run an operation that no plan runs."""
        if self._within:
            return super().run_node(scheduled, inputs)
        self._within = True
        start = perf_counter()
        results = super().run_node(scheduled, inputs)
        seconds = perf_counter() - start
        self._within = False
        nbytes = sum(a.nbytes for a in (*inputs, *results))
        self.steps.append(of_interpreted(scheduled, [r.shape for r in results], nbytes, seconds))
        return results

    def run_plan(self, plan: Executor, arrays: Sequence[Array], *, wide: bool) -> tuple[Array, ...]:
        """Run a plan kernel by kernel, to time each kernel. Plans of bodies run as a whole."""
        if self._within:
            return super().run_plan(plan, arrays, wide=wide)
        self._within = True
        results, seconds = plan.timed(arrays, self, wide=wide)
        self._within = False
        self.steps += of_plan(plan, seconds)
        return results


class BodyRun(InterpreterRun):
    """A run that records the steps of bodies in `steps`, by body and step, with times summed over all iterations."""

    holds_plans = False

    def __init__(self, compiled: Scheduler, variables: dict[str, Array]) -> None:
        super().__init__(compiled, variables)
        self.steps: dict[Graph, dict[tuple[str, str, tuple[Node, ...]], StepTime]] = {}
        self._body: Graph | None = None

    def run_body(self, body: Body, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run a body and attribute its steps to it."""
        outer, self._body = self._body, cast(Graph, body)
        try:
            return super().run_body(body, inputs)
        finally:
            self._body = outer

    def run_plan(self, plan: Executor, arrays: Sequence[Array], *, wide: bool) -> tuple[Array, ...]:
        """Run a plan. The plan of a body runs kernel by kernel, to time each kernel."""
        if self._body is None:
            return super().run_plan(plan, arrays, wide=wide)
        results, seconds = plan.timed(arrays, self, wide=wide)
        for step in of_plan(plan, seconds):
            self._add(self._body, step)
        return results

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run an operation that no plan runs."""
        start = perf_counter()
        results = super().run_node(scheduled, inputs)
        seconds = perf_counter() - start
        if self._body is not None:
            nbytes = sum(a.nbytes for a in (*inputs, *results))
            self._add(self._body, of_interpreted(scheduled, [r.shape for r in results], nbytes, seconds))
        return results

    def _add(self, body: Graph, step: StepTime) -> None:
        steps, key = self.steps.setdefault(body, {}), (step.operation, step.kernel, step.origin)
        before = steps.get(key)
        steps[key] = step if before is None else _sum(before, step)


def _sum(a: StepTime, b: StepTime) -> StepTime:
    seconds = a.seconds + b.seconds
    reach = None
    if a.reach is not None and b.reach is not None and seconds > 0:
        reach = (a.reach * a.seconds + b.reach * b.seconds) / seconds
    return replace(a, seconds=seconds, flops=a.flops + b.flops, nbytes=a.nbytes + b.nbytes, reach=reach)

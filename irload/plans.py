"""The schedules and plans of a model: each is made on first need, and kept for inputs of the same shapes."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from irload.core.op import Op
from irload.core.pause import uncollected
from irload.core.tensor import Array, TensorType
from irload.differences import RunDifferences
from irload.errors import ExecutionError
from irload.graph import Graph, Node
from irload.model import Model
from irload.ops.detection.boxes import Suppressing
from irload.plan.backends.base import Options
from irload.plan.folding import Folding
from irload.plan.interpreter import Run
from irload.plan.schedule import Part, Schedule, schedule_graph
from irload.portable import after_fork_in_child

if TYPE_CHECKING:
    from irload.plan.executor import Executor

PLANS = 8
"""Plans kept for each graph (the model and each body), those of the input shapes met last."""
SCHEDULES = 64
"""Schedules kept for each graph, likewise: a body whose shapes grow has one for each iteration."""


class Plans:
    """What runs of a model ask for: the schedule of a graph, a plan that nobody else is using. Thread-safe."""

    def __init__(self, model: Model, options: Options, *, optimize: bool) -> None:
        self.model = model
        self.limits = options.limits
        self.optimize = optimize
        self._options = options
        self._folding = Folding()
        self._schedules: OrderedDict[tuple[Any, ...], Schedule] = OrderedDict()
        self._pools: OrderedDict[Hashable, list[Executor]] = OrderedDict()
        self._planned: Counter[Graph] = Counter()
        """The schedules made of each body: one whose shapes grow with each iteration is soon no longer planned."""
        self._graphs = sum(1 for _ in model.walk())
        self._operations: dict[Node, Op] = {}
        """What takes the place of operations that no plan runs."""
        self._lock = Lock()
        _all.add(self)

    def schedule(self, graph: Graph, given: Sequence[TensorType], differences: RunDifferences | None) -> Schedule:
        """The schedule of the model's graph or one of its bodies on inputs of these types, made on first need.

        The types that it infers are shown to `differences`, once.
        """
        key = (id(graph), differences is None, *((t.element.name, t.shape) for t in given))
        with self._lock:
            found = self._schedules.get(key)
            if found is None:
                known = self.model.inferred if graph is self.model and self.limits == self.model.limits else None
                folding = self._folding if self.optimize else None
                few = graph is self.model or self._planned[graph] < PLANS
                with uncollected():
                    found = schedule_graph(graph, given, folding, self.limits, known, plan=few)
                self._planned[graph] += found.part is not None
                if differences is not None:
                    differences.compare_graph(graph, given, found.types)
                self._schedules[key] = found
                if len(self._schedules) > SCHEDULES * self._graphs:
                    self._schedules.popitem(last=False)
            else:
                self._schedules.move_to_end(key)
        return found

    def run_part(self, part: Part, arrays: Sequence[Array], run: Run, *, wide: bool = False) -> tuple[Array, ...]:
        """What the plan for a part of a graph gives; with `wide` floats of 16 bits as f32."""
        plan = self.take(part)
        try:
            results = plan.run(arrays, run, wide=wide)
        except Exception:
            self.give_back(part, plan)
            raise  # what only interrupts, however, might have left a thread that writes to the plan's memory
        self.give_back(part, plan)
        return results

    def take(self, part: Part) -> Executor:
        """A plan that nobody else is using: an idle one, or a new one with memory of its own. Raises ExecutionError."""
        with self._lock:
            idle = self._pools.setdefault(part.key, [])
            self._pools.move_to_end(part.key)
            if len(self._pools) > PLANS * self._graphs:
                self._pools.popitem(last=False)
            if idle:
                return idle.pop()
        try:
            with uncollected():
                from irload.plan.executor import make_plan  # with all kernels, which only planning needs

                return make_plan(part, self._options)
        except MemoryError as error:
            raise ExecutionError(f"there is not enough memory for the plan: {error}") from None

    def give_back(self, part: Part, plan: Executor) -> None:
        """Let others have a plan that was taken."""
        with self._lock:
            self._pools.setdefault(part.key, []).append(plan)

    def operation(self, node: Node) -> Op:
        """What runs a node that no plan runs: its own operation, or one whose inner functions are compiled."""
        if not self.optimize or not isinstance(node.op, Suppressing):
            return node.op
        found = self._operations.get(node)
        if found is None:
            from irload.plan.backends.registry import backends, operation

            found = self._operations[node] = operation(node.op, backends(self._options))
        return found


_all: WeakSet[Plans] = WeakSet()


def _unlock() -> None:
    """Free the locks that other threads of the parent held when this process was forked from it."""
    for plans in _all:
        plans._lock = Lock()  # pyright: ignore[reportPrivateUsage]


after_fork_in_child(_unlock)

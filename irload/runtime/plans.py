"""The schedules and plans of a model, created on first use and cached by input shapes."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from irload.core.op import Op
from irload.core.pause import uncollected
from irload.core.subgraph import Body, Subgraph
from irload.core.tensor import Array, TensorType
from irload.errors import out_of_memory
from irload.graph import Graph, Node
from irload.model import Model
from irload.options import Options
from irload.plan.accumulators import Accumulation
from irload.plan.backends.base import SharedData
from irload.plan.cached_attention import operation_of
from irload.plan.folding import Folding
from irload.plan.interpreter import InterpreterRun
from irload.plan.schedule import Schedule, State, StaticPart
from irload.plan.scheduling import schedule_graph
from irload.plan.tail import Tail
from irload.runtime.kept import ModelPlans, PlanStore
from irload.runtime.traced import NotBound, TracedPlans
from irload.runtime.variables import read_nodes
from irload.safety.limits import bounded
from irload.system.forks import unforked
from irload.system.portable import after_fork_in_child
from irload.validation.differences import RunDifferences

if TYPE_CHECKING:
    from irload.plan.executor import Executor

PLANS = 8
"""Maximum number of cached plans per graph (the model and each body); the least recently used are dropped."""
TAILS = 64
"""Maximum number of tails of the model and its bodies whose plans are cached."""
SCHEDULES = 64
"""Maximum number of cached schedules per graph: a body whose shapes grow has one for each iteration."""


class Plans:
    """Provides schedules of graphs, and plans that no other thread is using. Thread-safe."""

    def __init__(self, model: Model, options: Options) -> None:
        reads = read_nodes(model)
        options = with_facts(options, model, reads)
        self.model = model
        self.limits = options.limits
        self.optimize = options.optimize
        self._options = options
        self._shared: SharedData = {}
        self._folding = Folding()
        self._schedules: OrderedDict[tuple[Any, ...], Schedule] = OrderedDict()
        self._pools: OrderedDict[Hashable, list[Executor]] = OrderedDict()
        self._planned: Counter[Graph] = Counter()
        """Number of planned schedules of each graph: at most PLANS for a body, as its shapes may grow."""
        self._graphs = sum(1 for _ in model.walk())
        self._tails: OrderedDict[Hashable, TracedPlans] = OrderedDict()
        self._operations: dict[Node, Op] = {}
        """The operations with compiled inner functions, by node, for nodes that run outside of plans."""
        self._accumulations: dict[Body, Accumulation] = {}
        self._lock = Lock()
        self._traced = TracedPlans(model, reads, options, self._folding, self._shared)
        self._first_store: ModelPlans | None = None
        """Stores the plan of the first shape, unless the model has variables."""
        _all.add(self)

    def keep_plans(self, store: PlanStore, largest: int) -> None:
        """Restore traced plans from a store, and store new plans. `largest`: maximum bytes of constants of a plan."""
        if self._traced.applies:
            plans = self._traced.families.kept = ModelPlans(store, largest, self.model, self._folding)
            self._first_store = None if self.model.sinks else plans

    def expect_shapes(self) -> None:
        """Trace the first shape, too, instead of planning it alone, because other processes have run other shapes."""
        self._traced.traces_first = True
        self._first_store = None

    def keep_first(self, given: Sequence[TensorType], differences: RunDifferences | None, schedule: Schedule) -> None:
        """Create and store the plan of the first shape of a model with dynamic shapes. Raises OutOfMemory.

        The plan is not stored if ports contradict the types inferred for this shape: every run must report that.
        """
        store, part = self._first_store, schedule.entire
        self._first_store = None
        if store is None or part is None or (differences is not None and differences.differences):
            return
        plan = self.take(part)
        try:
            store.keep_static(given, plan)
        finally:
            self.give_back(part, plan)

    def schedule(
        self,
        graph: Graph,
        given: Sequence[TensorType],
        differences: RunDifferences | None,
        state: State | None = None,
    ) -> Schedule:
        """Return the schedule of the graph or a body for these input types. It is created on first use.

        When the schedule is created, `differences` compares the inferred types with the file. `state`: see
        `schedule_graph`.
        """
        held = () if state is None else tuple(t and (t.element.name, t.shape) for t in state.values())
        key = (id(graph), differences is None, state is None, held, *((t.element.name, t.shape) for t in given))
        with self._lock:
            schedule = self._schedules.get(key)
            if schedule is not None:
                self._schedules.move_to_end(key)
                return schedule
        with uncollected(), self._lock:  # in this order: a fork waits for the threads inside, which may need the lock
            schedule = self._schedules.get(key)
            if schedule is None:
                known = self.model.inferred if graph is self.model and self.limits == self.model.limits else None
                folding = self._folding if self.optimize else None
                few = graph is self.model or self._planned[graph] < PLANS
                schedule = schedule_graph(graph, given, folding, self.limits, known, plan=few, state=state)
                self._planned[graph] += schedule.part is not None
                if differences is not None:
                    differences.compare_graph(graph, given, schedule.types)
                self._schedules[key] = schedule
                if len(self._schedules) > SCHEDULES * self._graphs:
                    self._schedules.popitem(last=False)
        return schedule

    def run_part(
        self, part: StaticPart, arrays: Sequence[Array], run: InterpreterRun, *, wide: bool = False
    ) -> tuple[Array, ...]:
        """Return the results of the plan of a part of a graph; with `wide`, 16-bit floats are f32."""
        plan = self.take(part)
        try:
            results = run.run_plan(plan, arrays, wide=wide)
        except Exception:
            self.give_back(part, plan)
            raise  # after an interrupt the plan is not reused: a thread may still write to its memory
        self.give_back(part, plan)
        return results

    def run_tail(self, tail: Tail, arrays: Sequence[Array], run: InterpreterRun) -> tuple[Array, ...] | None:
        """Return the results of a tail by a traced plan, 16-bit floats as f32; None if it cannot be traced."""
        plans = tail.plans
        if not isinstance(plans, TracedPlans):
            with self._lock:
                plans = tail.plans = self._tails.get(tail.key) or self._traced.of_tail(tail)
                self._tails[tail.key] = plans
                if len(self._tails) > TAILS:
                    self._tails.popitem(last=False)
        if not plans.traceable or plans.is_fruitless:
            return None
        shape = plans.find_tail(tail, arrays, run.differences)
        if shape is None:
            return None
        passed = shape.variant.passed
        if passed is not None:
            return tuple(arrays[k] for k in passed)
        before = run.plans_run
        try:
            results = plans.run(shape, arrays, run, wide=True)
        except NotBound:
            return None
        plans.is_fruitless = run.plans_run == before
        return results

    def take(self, part: StaticPart) -> Executor:
        """Return an idle plan, or a new one with separate memory. Raises OutOfMemory."""
        with self._lock:
            idle = self._pools.setdefault(part.key, [])
            self._pools.move_to_end(part.key)
            if len(self._pools) > PLANS * self._graphs:
                self._pools.popitem(last=False)
            if idle:
                return idle.pop()
        try:
            with uncollected(), bounded(self.limits):
                from irload.plan.executor import make_plan  # imports all kernels, which only planning needs

                return make_plan(part, self._options, self._shared)
        except MemoryError as error:
            raise out_of_memory("for the plan", error) from None

    def give_back(self, part: StaticPart, plan: Executor) -> None:
        """Make a plan available again for `take`."""
        with self._lock:
            self._pools.setdefault(part.key, []).append(plan)

    def accumulation(self, loop: Subgraph) -> Accumulation:
        """Return the accumulators of a loop, and its body without them: the same object in each run."""
        known = self._accumulations.get(loop.body)
        return known or self._accumulations.setdefault(loop.body, Accumulation.of(loop))

    def operation(self, node: Node) -> Op:
        """Return the operation that runs a node outside of plans: unchanged, or with compiled inner functions."""
        if not self.optimize or not node.op.replaceable:
            return operation_of(node)
        op = self._operations.get(node)
        if op is None:
            with unforked:
                from irload.plan.backends.registry import backends, operation

                op = self._operations[node] = operation(node.op, backends(self._options))
        return op


_all: WeakSet[Plans] = WeakSet()


def _unlock() -> None:
    """Recreate the locks after a fork, as other threads of the parent may have held them."""
    for plans in _all:
        plans._lock = Lock()  # noqa: SLF001


after_fork_in_child(_unlock)


def with_facts(options: Options, model: Model, reads: Sequence[Node]) -> Options:
    """Return the options with the properties of a model on which kernel selection depends. `reads`: its ReadValues."""
    shapes = [p.outputs[0].type.shape for p in model.parameters]
    resized = any(shape.rank is None or not all(dim.is_static for dim in shape.dims[1:]) for shape in shapes)
    return replace(options, variables=bool(reads), resized=resized)

"""One inference under way, node by node, and what its operations may ask of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, ClassVar, Protocol, cast

import numpy as np
from numpy.lib.array_utils import byte_bounds

from irload.core.element import ElementType, dynamic, element_of_dtype
from irload.core.op import Op, evaluate, infer_outputs
from irload.core.shape import Shape
from irload.core.subgraph import Body
from irload.core.tensor import Array, TensorType
from irload.differences import RunDifferences
from irload.errors import IRError
from irload.graph import Graph, Node
from irload.inference import Inference
from irload.memory import VIEWS
from irload.model import Model
from irload.plan.memory_tracker import MemoryTracker
from irload.plan.schedule import Part, Schedule, ScheduledNode, require_size
from irload.plan.wide import rounded_array, takes_its_own_types, wide_type, widened_array
from irload.safety import Deadline, Limits


class Scheduler(Protocol):
    """What gives schedules for a model's graphs."""

    model: Model
    limits: Limits
    optimize: bool

    def schedule(self, graph: Graph, given: Sequence[TensorType], differences: RunDifferences | None) -> Schedule:
        """The schedule of a graph on inputs of these types; `differences` compares them with what the file declares."""
        ...

    def operation(self, node: Node) -> Op:
        """What runs a node that no plan runs: its own operation, or one that gives the same sooner."""
        ...

    def run_part(self, part: Part, arrays: Sequence[Array], run: Run, *, wide: bool = False) -> tuple[Array, ...]:
        """What the plan for a part of a graph gives; with `wide` floats of 16 bits as f32."""
        ...


class Run:
    """One inference under way: the RunContext that control flow and state ask for.

    What a graph assigns to variables takes effect once that graph has run: for the next inference, or in a body for the
    next iteration.
    """

    plans: ClassVar[bool] = True
    """Whether plans run what they can. Else every node runs for itself."""

    def __init__(self, compiled: Scheduler, variables: dict[str, Array]) -> None:
        self.compiled = compiled
        self.variables = variables
        self.limits = compiled.limits
        self.deadline = Deadline(compiled.limits)
        self.tracker = MemoryTracker(compiled.limits)
        self.outputs: Sequence[TensorType] = ()
        self.differences: RunDifferences | None = None
        """Compares the types that only a run knows with what the file declares."""
        self.iterations = 0
        self._assigned: dict[str, Array] = {}
        self._schedules: dict[Graph, tuple[tuple[tuple[Any, ...], ...], Schedule]] = {}
        """The schedule of each body for the dtypes and shapes that it was given last."""

    def run(self, schedule: Schedule, arrays: Sequence[Array], *, wide: bool = False) -> tuple[Array, ...]:
        """The results of a graph: by a plan where every type is known, else node by node behind what is planned.

        With `wide` those of 16 bits may be f32.
        """
        part = schedule.part
        if part is None or not schedule.is_static or not self.plans:
            return self.interpret(schedule, arrays, wide=wide)
        return self.assigning(lambda: self.compiled.run_part(part, arrays, self, wide=wide))

    def interpret(self, schedule: Schedule, arrays: Sequence[Array], *, wide: bool = False) -> tuple[Array, ...]:
        """Run every node of a schedule, dropping each value after its last use."""
        return self.assigning(lambda: self._nodes(schedule, arrays, wide=wide))

    def assigning(self, graph: Callable[[], tuple[Array, ...]]) -> tuple[Array, ...]:
        """Run a graph; what it assigns to variables takes effect once it is done."""
        outer, self._assigned = self._assigned, {}
        results = graph()
        self.variables.update(self._assigned)
        self._assigned = outer
        return results

    def _nodes(self, schedule: Schedule, arrays: Sequence[Array], *, wide: bool) -> tuple[Array, ...]:
        slots: list[Array | None] = [None] * schedule.slots
        for slot, constant in schedule.constants:
            slots[slot] = constant.held_array()
        for slot, array in zip(schedule.parameters, arrays, strict=True):
            slots[slot] = array
        tracker = self.tracker
        for array in slots:
            if array is not None:
                tracker.hold(array)
        for node in self._planned(schedule, slots):
            inputs = [cast(Array, slots[k]) for k in node.inputs]
            for slot, array in zip(node.outputs, self.run_node(node, inputs), strict=False):
                slots[slot] = array
                tracker.hold(array)
            for slot in node.last_use:
                tracker.release(slots[slot])
                slots[slot] = None
        for array in slots:
            tracker.release(array)
        results = tuple(cast(Array, slots[k]) for k in schedule.results)
        if wide:
            return results
        return tuple(rounded_array(a, t) for a, t in zip(results, schedule.result_types, strict=True))

    def _planned(self, schedule: Schedule, slots: list[Array | None]) -> Sequence[ScheduledNode]:
        """Run what can be planned; gives the nodes that are left."""
        part = schedule.part
        if part is None or not self.plans:
            return schedule.nodes
        results = self.compiled.run_part(part, [cast(Array, slots[k]) for k in part.taken], self, wide=True)
        for slot, array in zip(part.given, results, strict=True):
            slots[slot] = array
            self.tracker.hold(array)
        return schedule.rest

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run one operation. What its schedule could not know of its outputs is inferred now, from the values."""
        try:
            self.deadline.check()
            types = scheduled.types if scheduled.known else self.types(scheduled, inputs)
            if not scheduled.known:
                for tensor in types:
                    require_size(tensor, self.limits)
                if self.differences is not None:
                    self.differences.compare_outputs(scheduled.node, types)
            if scheduled.node.type not in VIEWS:
                self.tracker.require(scheduled.nbytes if scheduled.known else sum(t.nbytes or 0 for t in types))
            self.outputs = types
            op = self.compiled.operation(scheduled.node) if self.plans else scheduled.node.op
            if scheduled.short and self.compiled.optimize:
                return self._evaluate_short(op, scheduled, inputs, types)
            return evaluate(op, inputs, types, self)
        except IRError as error:
            raise error.at(scheduled.node.where(self.compiled.model.file)) from error.__cause__

    def _evaluate_short(
        self, op: Op, scheduled: ScheduledNode, inputs: Sequence[Array], types: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        """An operation on floats of 16 bits, which are rounded only for those that take their own types."""
        if takes_its_own_types(scheduled.node):
            own = [rounded_array(a, t) for a, t in zip(inputs, scheduled.input_types, strict=True)]
            return evaluate(op, own, types, self)
        return tuple(
            map(widened_array, evaluate(op, list(map(widened_array, inputs)), list(map(wide_type, types)), self))
        )

    def types(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> Sequence[TensorType]:
        """The output types for these very inputs: the checks of `infer` on shapes that only now are known."""
        if not scheduled.node.op.infers_from_scalars:
            return self._inferred(scheduled, inputs)
        key = tuple((a.dtype, a.shape, a.tobytes() if a.size == 1 and a.dtype.kind in "biu" else b"") for a in inputs)
        found = scheduled.inferred.get(key)
        if found is None:
            found = self._inferred(scheduled, inputs)
            scheduled.inferred.clear()
            scheduled.inferred[key] = found
        return found

    def _inferred(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[TensorType, ...]:
        known = [
            TensorType(_element(t, a), Shape(*a.shape), rounded_array(a, t))
            for t, a in zip(scheduled.input_types, inputs, strict=True)
        ]
        return infer_outputs(scheduled.node.op, known, Inference(self.compiled.model.file, limits=self.limits))

    # -- the RunContext ----------------------------------------------------------------------------------------------

    def run_body(self, body: Body, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The results of a body, given one array for each of its parameters."""
        graph = cast(Graph, body)
        form = tuple((a.dtype, a.shape) for a in inputs)
        known, schedule = self._schedules.get(graph, (None, None))
        if schedule is None or known != form:
            given = [
                TensorType(_element(p.outputs[0].type, a), Shape(*a.shape))
                for p, a in zip(graph.parameters, inputs, strict=True)
            ]
            schedule = self.compiled.schedule(graph, given, self.differences)
            self._schedules[graph] = form, schedule
        outputs = self.outputs
        results = self.run(schedule, inputs)
        self.outputs = outputs
        return results

    def spend_iteration(self) -> None:
        """Count one iteration of a loop. Raises LimitExceeded when the budget is used up."""
        self.iterations += 1
        if self.iterations > self.limits.iterations:
            raise self.limits.exceeded("iterations", f"ran more than {self.limits.iterations} iterations")
        self.deadline.check()

    def read_variable(self, name: str) -> Array | None:
        """The value of a variable, None before it has one."""
        return self.variables.get(name)

    def write_variable(self, name: str, value: Array) -> None:
        """Give a variable its value for the next inference, or the next iteration of the body it stands in."""
        # The memory of a plan, of which it may be a view, serves the next step and the next inference.
        self._assigned[name] = value.copy() if isinstance(value.base, np.ndarray) else value


class TimedRun(Run):
    """A run that notes of each node of its schedule: the shapes of the outputs, the bytes moved, the seconds."""

    def __init__(self, compiled: Scheduler, variables: dict[str, Array]) -> None:
        super().__init__(compiled, variables)
        self.timed: list[tuple[list[tuple[int, ...]], int, float]] = []
        self._within = False

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run one operation; those of bodies belong to the one that runs them."""
        if self._within:
            return super().run_node(scheduled, inputs)
        self._within = True
        start = perf_counter()
        results = super().run_node(scheduled, inputs)
        seconds = perf_counter() - start
        self._within = False
        self.timed.append(([r.shape for r in results], sum(a.nbytes for a in (*inputs, *results)), seconds))
        return results


def apart(arrays: Mapping[str, Array], others: Sequence[Array]) -> dict[str, Array]:
    """The arrays, copied where they share memory with one of the others."""
    ends: list[int] = []  # of disjoint stretches of memory: begin, end, begin, end …
    for low, high in sorted(map(byte_bounds, others)) if arrays else ():
        if ends and low <= ends[-1]:
            ends[-1] = max(ends[-1], high)
        else:
            ends += [low, high]
    found: dict[str, Array] = {}
    for name, array in arrays.items():
        low, high = byte_bounds(array)
        at = bisect_right(ends, low)
        shared = at % 2 or (at < len(ends) and ends[at] < high)
        found[name] = array.copy() if shared else array
    return found


def _element(tensor: TensorType, array: Array) -> ElementType:
    """The element type of an array at run time; its dtype tells where inference could not."""
    return element_of_dtype(array.dtype) if tensor.element is dynamic else tensor.element

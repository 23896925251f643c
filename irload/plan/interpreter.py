"""One inference in progress: runs plans and single nodes, and serves operations with bodies or state."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

import numpy as np
from numpy.lib.array_utils import byte_bounds

from irload.analysis.memory import VIEWS
from irload.core.context import RunBody
from irload.core.element import ElementType, dynamic, element_of_dtype
from irload.core.op import Op, evaluate, infer_outputs, is_builtin
from irload.core.shape import shape_of
from irload.core.subgraph import Accumulator, Body, Subgraph
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, IRError
from irload.graph import Graph, Node
from irload.inference import Inference
from irload.model import Model
from irload.plan.accumulators import Accumulation
from irload.plan.cached_attention import operation_of
from irload.plan.held_body import HeldBody
from irload.plan.inferred_types import Outputs, UnreadType, form_of
from irload.plan.memory_tracker import MemoryTracker
from irload.plan.schedule import Schedule, ScheduledNode, StaticPart, TailPart
from irload.plan.size_limits import require_size
from irload.plan.tail import Tail
from irload.plan.variables import GrownRows, Variables
from irload.plan.wide import rounded_array, takes_its_own_types, wide_type, widened_array
from irload.safety.limits import Deadline, Limits
from irload.system.blas import single_threaded_blas
from irload.validation.differences import RunDifferences

if TYPE_CHECKING:
    from irload.plan.executor import Executor


RunPart = Callable[[Sequence[Array]], tuple[Array, ...]]
"""Returns the results of the planned part of a schedule; 16-bit floats are f32."""


class Scheduler(Protocol):
    """Provides schedules for a model's graphs."""

    model: Model
    limits: Limits
    optimize: bool
    threads: int

    def schedule(self, graph: Graph, given: Sequence[TensorType], differences: RunDifferences | None) -> Schedule:
        """Return the schedule of a graph for these input types; `differences` compares types with declarations."""
        ...

    def operation(self, node: Node) -> Op:
        """Return the operation that runs a node outside of plans: its operation, or an equivalent faster one."""
        ...

    def accumulation(self, loop: Subgraph) -> Accumulation:
        """Return the accumulators of a loop, and its body without them: the same object in each run."""
        ...

    def run_part(
        self, part: StaticPart, arrays: Sequence[Array], run: InterpreterRun, *, wide: bool = False
    ) -> tuple[Array, ...]:
        """Return the results of the plan of a part of a graph; with `wide`, 16-bit floats as f32."""
        ...

    def take(self, part: StaticPart) -> Executor:
        """Return a plan that no other thread uses until `give_back`."""
        ...

    def give_back(self, part: StaticPart, plan: Executor) -> None:
        """Make a plan available again."""
        ...

    def run_tail(self, tail: Tail, arrays: Sequence[Array], run: InterpreterRun) -> tuple[Array, ...] | None:
        """Return the results of a tail by a plan, 16-bit floats as f32; None if it is not planned for these shapes."""
        ...


class InterpreterRun:
    """One inference in progress, which is the RunContext of operations with bodies or state.

    Assignments to variables take effect at the end of their graph: in the next inference, or for a body in the next
    iteration.
    """

    uses_plans: ClassVar[bool] = True
    """Whether plans are used. Otherwise every node runs separately."""
    holds_plans: ClassVar[bool] = True
    """Whether loops hold the plan of their body between iterations. Otherwise `run_body` runs in each."""

    def __init__(self, compiled: Scheduler, variables: Mapping[str, Array]) -> None:
        self.compiled = compiled
        self.variables = variables.copy() if isinstance(variables, Variables) else Variables(variables)
        self.limits = compiled.limits
        self.deadline = Deadline(compiled.limits)
        self.outputs: Sequence[TensorType] = ()
        self.differences: RunDifferences | None = None
        """Compares types that are inferred only at run time with the declarations of the file."""
        self.spent_iterations = 0
        self.plans_run = 0
        """The number of plans that have run so far."""
        self._assigned = Variables()
        self._schedules: dict[Graph, tuple[tuple[tuple[Any, ...], ...], Schedule]] = {}
        """The schedule of each body for the dtypes and shapes of its last call."""
        self._accumulations: dict[Body, Accumulation] = {}

    @cached_property
    def tracker(self) -> MemoryTracker:
        """Counts the memory of values outside of plans."""
        return MemoryTracker(self.limits)

    def run(self, schedule: Schedule, arrays: Sequence[Array], *, wide: bool = False) -> tuple[Array, ...]:
        """Return the results of a graph. A plan runs all nodes with known types; the other nodes run one by one.

        With `wide`, 16-bit results may be f32.
        """
        part = schedule.part
        if part is None or not schedule.is_static or not self.uses_plans:
            return self.interpret(schedule, arrays, wide=wide)
        return self.run_assigning(lambda: self.compiled.run_part(part, arrays, self, wide=wide))

    def interpret(self, schedule: Schedule, arrays: Sequence[Array], *, wide: bool = False) -> tuple[Array, ...]:
        """Run every node of a schedule, dropping each value after its last use."""
        return self.run_assigning(lambda: self.run_nodes(schedule, arrays, wide=wide))

    def run_assigning(self, graph: Callable[[], tuple[Array, ...]]) -> tuple[Array, ...]:
        """Run a graph; its assignments to variables take effect at the end."""
        outer, self._assigned = self._assigned, Variables()
        results = graph()
        assigned, self._assigned = self._assigned, outer
        if assigned.separate:
            self.variables.update(assigned.separate)
        if assigned.rows is not None:
            self.variables.hold(assigned.rows)
        return results

    def run_nodes(
        self, schedule: Schedule, arrays: Sequence[Array], plan: RunPart | None = None, *, wide: bool
    ) -> tuple[Array, ...]:
        """Return the results of the nodes of a schedule. `plan` runs the planned part; if None, `run_part` does."""
        with single_threaded_blas if schedule.multiplies and self.compiled.threads == 1 else nullcontext():
            return self._in_order(schedule, arrays, plan, wide=wide)

    def _in_order(
        self, schedule: Schedule, arrays: Sequence[Array], plan: RunPart | None, *, wide: bool
    ) -> tuple[Array, ...]:
        slots: list[Array | None] = [None] * schedule.slots
        first = schedule.rest if self.uses_plans else schedule.nodes
        self._fill(slots, schedule.parameters, arrays)
        self._fill_constants(schedule, first, slots)
        if self.uses_plans:
            self._planned(schedule, slots, plan)
        self._one_by_one(first, slots)
        for part in schedule.tails if self.uses_plans else ():
            if not self._tail(part, slots):
                self._fill_constants(schedule, part.nodes, slots)
                self._one_by_one(part.nodes, slots)
        for array in slots:
            if array is not None:
                self.tracker.release(array)
        results = tuple(cast(Array, slots[k]) for k in schedule.results)
        if wide:
            return results
        return tuple(rounded_array(a, t) for a, t in zip(results, schedule.result_types, strict=True))

    def _one_by_one(self, nodes: Sequence[ScheduledNode], slots: list[Array | None]) -> None:
        """Run nodes by their operations."""
        for node in nodes:
            inputs = [cast(Array, slots[k]) for k in node.inputs]
            self._fill(slots, node.outputs, self.run_node(node, inputs))
            self._release(node, slots)

    def _release(self, node: ScheduledNode | TailPart, slots: list[Array | None]) -> None:
        """Drop the values that no later node reads."""
        for slot in node.last_use:
            self.tracker.release(slots[slot])
            slots[slot] = None

    def _planned(self, schedule: Schedule, slots: list[Array | None], plan: RunPart | None) -> None:
        """Run the planned part of a schedule."""
        part = schedule.part
        if part is not None:
            arrays = [cast(Array, slots[k]) for k in part.parameter_slots]
            results = self.compiled.run_part(part, arrays, self, wide=True) if plan is None else plan(arrays)
            self._fill(slots, part.result_slots, results)

    def _tail(self, part: TailPart, slots: list[Array | None]) -> bool:
        """Run a tail of a schedule by a plan for the shapes that are known now. False without a tail or a plan."""
        if part.tail is None:
            return False
        results = self.compiled.run_tail(part.tail, [cast(Array, slots[k]) for k in part.read], self)
        if results is None:
            return False
        self._fill(slots, part.written, results)
        self._release(part, slots)
        return True

    def _fill_constants(self, schedule: Schedule, nodes: Sequence[ScheduledNode], slots: list[Array | None]) -> None:
        """Fill the slots of the constants that these nodes, the plans of tails, or the caller read."""
        of_tails = (slot for part in schedule.tails for slot in part.read)
        read = {*schedule.results, *of_tails, *(slot for node in nodes for slot in node.inputs)}
        for slot, constant in schedule.constants:
            if slots[slot] is None and slot in read:
                self._fill(slots, (slot,), (constant.held_array(),))

    def _fill(self, slots: list[Array | None], outputs: Sequence[int], results: Sequence[Array]) -> None:
        """Store results in their slots. A file may list fewer ports than an operation has."""
        for slot, array in zip(outputs, results, strict=False):
            slots[slot] = array
            self.tracker.hold(array)

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run one operation. Output types that the schedule could not infer are inferred here, from the values."""
        try:
            self.deadline.check()
            types, nbytes = scheduled.types, scheduled.nbytes
            if not scheduled.known:
                outputs = self._checked_types(scheduled, inputs)
                types, nbytes = outputs.types, outputs.nbytes
            if scheduled.node.type not in VIEWS:
                self.tracker.require(nbytes)
            self.outputs = types
            op = self.compiled.operation(scheduled.node) if self.uses_plans else operation_of(scheduled.node)
            if scheduled.short and self.compiled.optimize:
                return self._evaluate_short(op, scheduled, inputs, types)
            return evaluate(op, inputs, types, self)
        except IRError as error:
            raise error.at(scheduled.node.where(self.compiled.model.file)) from error.__cause__

    def _evaluate_short(
        self, op: Op, scheduled: ScheduledNode, inputs: Sequence[Array], types: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        """Run an operation on 16-bit floats in f32; only operations that require 16-bit types get rounded inputs."""
        if takes_its_own_types(scheduled.node):
            rounded = [rounded_array(a, t) for a, t in zip(inputs, scheduled.input_types, strict=True)]
            return evaluate(op, rounded, types, self)
        return tuple(
            map(widened_array, evaluate(op, list(map(widened_array, inputs)), list(map(wide_type, types)), self))
        )

    def _checked_types(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> Outputs:
        """Return the output types, for shapes that are known only at run time, and their bytes.

        Runs the checks of `infer`, and compares the types with the schedule, the limits, and the file.
        """
        form = (self.differences is None, *form_of(inputs))
        outputs = scheduled.inferred.find(form, inputs)
        if outputs is None:
            given = list(map(UnreadType.of_stored, inputs, scheduled.input_types))
            outputs = self._check_types(scheduled, given)
            if is_builtin(scheduled.node.op):
                scheduled.inferred.keep(form, inputs, given, outputs)
        return outputs

    def _check_types(self, scheduled: ScheduledNode, given: Sequence[TensorType]) -> Outputs:
        inference = Inference(self.compiled.model.file, limits=self.limits, runs=True)
        types = list(infer_outputs(scheduled.node.op, given, inference))
        for k, (tensor, expected) in enumerate(zip(types, scheduled.types, strict=False)):
            shape = expected.shape.meet(tensor.shape)  # of a Loop, either may have the tighter bounds
            if shape is None:
                raise ExecutionError(f"output {k} is of shape {tensor.shape}, inferred {expected.shape}")
            if shape != tensor.shape:
                types[k] = replace(tensor, shape=shape)
            require_size(tensor, self.limits)
        if self.differences is not None:
            self.differences.compare_outputs(scheduled.node, types)
        return Outputs(tuple(t.without_value() for t in types), sum(t.nbytes or 0 for t in types))

    def run_plan(self, plan: Executor, arrays: Sequence[Array], *, wide: bool) -> tuple[Array, ...]:
        """Return the results of the plan of the graph or of a body."""
        self.plans_run += 1
        return plan.run(arrays, self, wide=wide)

    # -- the RunContext ----------------------------------------------------------------------------------------------

    def run_body(self, body: Body, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Return the results of a body for one array per parameter."""
        _, inputs, schedule = self.scheduled_body(body, inputs)
        outputs = self.outputs
        results = self.run(schedule, inputs)
        self.outputs = outputs
        return results

    @contextmanager
    def iterations(self, loop: Subgraph, carried: Collection[int]) -> Generator[RunBody]:
        """Yield the function that runs the body of a loop. The results at `carried` are valid until its next call."""
        if not self.holds_plans:
            yield partial(self.run_body, loop.body)
            return
        held = HeldBody(self, loop, carried)
        try:
            yield held.run
        except Exception:
            held.release()
            raise  # after an interrupt the plan is not reused: a thread may still write to its memory
        held.release()

    def scheduled_body(self, body: Body, inputs: Sequence[Array]) -> tuple[Graph, Sequence[Array], Schedule]:
        """Return the graph that runs instead of a body, its inputs, and its schedule."""
        graph, accumulation = cast(Graph, body), self._accumulations.get(body)
        if accumulation is not None:
            graph, inputs = accumulation.body, [inputs[k] for k in accumulation.kept]
        form = tuple([(a.dtype, a.shape) for a in inputs])  # a list is faster than a generator
        known, schedule = self._schedules.get(graph, (None, None))
        if schedule is None or known != form:
            given = [
                TensorType(_element(p.outputs[0].type, a), shape_of(a.shape))
                for p, a in zip(graph.parameters, inputs, strict=True)
            ]
            schedule = self.compiled.schedule(graph, given, self.differences)
            self._schedules[graph] = form, schedule
        return graph, inputs, schedule

    def accumulators(self, loop: Subgraph) -> Sequence[Accumulator]:
        """Return the values whose parts `run_body` returns; none if every layer runs as in the file."""
        if not self.uses_plans or not self.compiled.optimize:
            return ()
        known = self._accumulations.get(loop.body)
        if known is None:
            known = self._accumulations[loop.body] = self.compiled.accumulation(loop)
        return known.accumulators

    def spend_iteration(self) -> None:
        """Count one iteration of a loop. Raises LimitExceeded when the budget is used up."""
        self.spent_iterations += 1
        if self.spent_iterations > self.limits.iterations:
            raise self.limits.exceeded("iterations", f"ran more than {self.limits.iterations} iterations")
        self.deadline.check()

    def read_variable(self, name: str) -> Array | None:
        """Return the value of a variable, or None before its first assignment."""
        return self.variables.get(name)

    def grow_variables(self, rows: GrownRows) -> None:
        """Set the variables that a plan has extended, for the next inference."""
        self._assigned.hold(rows)

    def write_variable(self, name: str, value: Array) -> None:
        """Set a variable for the next inference, or for the next iteration of the body that contains the Assign."""
        # The value is copied if it is a view of a plan's memory, which the next step or inference overwrites.
        self._assigned[name] = value.copy() if isinstance(value.base, np.ndarray) else value


def apart(variables: Variables, others: Sequence[Array]) -> Variables:
    """Return the variables; a variable that shares memory with one of `others` is copied."""
    ends: list[int] = []  # disjoint memory ranges: begin, end, begin, end …
    arrays = variables.separate
    for low, high in sorted(map(byte_bounds, others)) if arrays else ():
        if ends and low <= ends[-1]:
            ends[-1] = max(ends[-1], high)
        else:
            ends += [low, high]
    copies: dict[str, Array] = {}
    for name, array in list(arrays.items()):
        low, high = byte_bounds(array)
        at = bisect_right(ends, low)
        shared = at % 2 or (at < len(ends) and ends[at] < high)
        if shared:
            copies[name] = array.copy()
    if copies:
        variables.update(copies)
    return variables


def _element(tensor: TensorType, array: Array) -> ElementType:
    """Return the element type of an array at run time, from its dtype if inference could not determine it."""
    return element_of_dtype(array.dtype) if tensor.element is dynamic else tensor.element

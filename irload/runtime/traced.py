"""The traced plans of a model, and the choice of the shapes that they run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np

from irload.core.pause import uncollected
from irload.core.tensor import Array, TensorType
from irload.errors import LimitExceeded, OutOfMemory, out_of_memory
from irload.graph import Node
from irload.model import Model
from irload.options import Options
from irload.plan.backends.base import SharedData
from irload.plan.folding import Folding
from irload.plan.interpreter import InterpreterRun
from irload.plan.sanitizing import is_on
from irload.plan.schedule import State
from irload.runtime.families import ENDS, BoundShape, PlanFamilies
from irload.runtime.growing import Successor, extended
from irload.runtime.kept import KeptPlans
from irload.safety.limits import bounded
from irload.system.forks import unforked
from irload.system.portable import after_fork_in_child
from irload.validation.differences import RunDifferences

if TYPE_CHECKING:
    from irload.plan.executor import Executor
    from irload.plan.tail import Tail
    from irload.plan.traced.workspace import Workspace
    from irload.plan.variables import Variables

NOWHERE: Array = np.zeros(0, np.int64)
"""The addresses of no variables."""
SHAPES = 256
"""Maximum number of shapes whose traced plan is cached."""


class NotBound(Exception):
    """A traced plan cannot be bound to a shape, although its guards hold."""


class TracedPlans:
    """The traced plans of a model. Thread-safe.

    The first shape for which no variable has a value is planned alone, that is, without symbols. If the model has
    variables and its plans are stored, this shape is traced as well, because the lengths of prompts differ.
    """

    def __init__(
        self,
        model: Model,
        reads: Sequence[Node],
        options: Options,
        folding: Folding,
        shared: SharedData,
        kept: KeptPlans | None = None,
        *,
        tail: Tail | None = None,
        traces: bool = True,
    ) -> None:
        self._options = options
        self._tail = tail
        self._declared = [p.outputs[0].type.shape for p in model.parameters] if tail is None else tail.declared
        self._variables = {n: n.outputs[0].type.shape for n in reads}
        self._names = [n.op.attributes["variable_id"] for n in reads]
        self.families = PlanFamilies(model, self._declared, self._variables, options, folding, shared, kept, tail)
        self._shapes: OrderedDict[Hashable, BoundShape | None] = OrderedDict()
        """The traced plans by the types of inputs and variables; None for the shape that is planned alone."""
        self._alone: Hashable = None
        """The key in `_shapes` of the shape that is planned alone."""
        self.traces_first = False
        """True if the first shape is traced, too."""
        self._traces = traces
        """False if plans are only restored, never traced."""
        self.is_fruitless = False
        """True for a tail if its last run consisted of operations alone, as in a tokenizer: it is not planned again."""
        self.lock = Lock()
        _all.add(self)

    def of_tail(self, tail: Tail) -> TracedPlans:
        """Return the plans of a tail of the model. Every shape is traced, including the first."""
        families = self.families
        return TracedPlans(families.model, (), self._options, families.folding, families.shared, tail=tail)

    @property
    def applies(self) -> bool:
        """False if every shape is planned alone: no dim is dynamic, or the options exclude traced plans."""
        return self.traceable and any(not s.is_static for s in (*self._declared, *self._variables.values()))

    @property
    def traceable(self) -> bool:
        """False if the options exclude traced plans."""
        return self._options.optimize and not self._options.tune and not is_on()

    def find(
        self, given: Sequence[TensorType], differences: RunDifferences | None, state: State | None = None
    ) -> BoundShape | None:
        """Return the traced plan for inputs and variables of these types; None if this shape is planned alone."""
        held = () if state is None else state.values()
        key = differences is None, state is None, *(t and (t.element.name, t.shape.static) for t in (*given, *held))
        with self.lock:
            shape = self._known(key)
            if shape is not None:
                return shape
            begins = not any(held) and (self.families.kept is None and state is not None if self._variables else True)
            if self._alone is None and begins and not self.traces_first:
                self._alone = key
                self._shapes[key] = None
                if self.families.kept is None:
                    return None
            elif key in self._shapes and not self.families.recent:
                return None

        def find() -> BoundShape | None:
            return self.families.find(given, differences, state, traces=self._traces and key != self._alone)

        return self._cached(key, find)

    def find_tail(self, tail: Tail, arrays: Sequence[Array], differences: RunDifferences | None) -> BoundShape | None:
        """Return the traced plan of a tail for these arrays; None if the tail cannot be traced."""
        key = differences is None, *tail.forms(arrays)
        with self.lock:
            shape = self._known(key)
        if shape is not None:
            return shape
        return self._cached(key, lambda: self.families.find(tail.types(arrays), differences, None, traces=True))

    def _known(self, key: Hashable) -> BoundShape | None:
        """Return the plan of a shape that was used before, and mark it as recently used."""
        shape = self._shapes.get(key)
        if shape is not None:
            self._shapes.move_to_end(key)
            if shape.variant in self.families.recent:
                self.families.recent.move_to_end(shape.variant)
        return shape

    def _cached(self, key: Hashable, find: Callable[[], BoundShape | None]) -> BoundShape | None:
        """Return the plan of a shape: a cached one, or the result of `find`."""
        with unforked, self.lock:  # in this order: a fork waits for the threads inside, which may need the lock
            shape = self._shapes.get(key) or find()
            if shape is not None:
                self._shapes[key] = shape
                if len(self._shapes) > SHAPES:
                    self._shapes.popitem(last=False)
            return shape

    def take(self, shape: BoundShape, external: Array = NOWHERE) -> tuple[Workspace, Executor]:
        """Return an idle workspace, and the plan bound in it to a shape and to the addresses of variables.

        Raises LimitExceeded and OutOfMemory.
        """
        with self.lock:
            workspace = shape.variant.idle.pop() if shape.variant.idle else None
        if workspace is None:
            with unforked:
                from irload.plan.traced.workspace import Workspace

                workspace = Workspace(shape.variant.planned)
        plan = workspace.bound(shape.values, external)
        if plan is None:
            try:
                with uncollected(), bounded(self._options.limits):
                    plan = workspace.bind(shape.values, external)
            except MemoryError as error:
                raise out_of_memory("for the plan", error) from None
            except (LimitExceeded, OutOfMemory):
                self.give_back(shape, workspace)
                raise
            except ENDS as error:
                with self.lock:
                    self.families.drop(shape.variant, error)
                    self._shapes = OrderedDict((key, None) for key in list(self._shapes)[:1])
                raise NotBound(f"{type(error).__name__}: {error}") from error
        return workspace, plan

    def give_back(self, shape: BoundShape, workspace: Workspace) -> None:
        """Make a workspace available again for `take`."""
        with self.lock:
            shape.variant.idle.append(workspace)

    def run(
        self, shape: BoundShape, arrays: Sequence[Array], run: InterpreterRun, *, wide: bool = False
    ) -> tuple[Array, ...]:
        """Return the results of the graph for a shape."""
        template, remainder, read = shape.variant.template, shape.variant.remainder, shape.variant.read
        if remainder is None:
            return self._planned(shape, arrays if read is None else [arrays[k] for k in read], run, wide=wide)
        schedule = remainder.at(shape.values)
        plan = None if template is None else lambda inputs: self._planned(shape, inputs, run, wide=True)
        return run.run_nodes(schedule, arrays, plan, wide=wide)

    def _planned(
        self, shape: BoundShape, arrays: Sequence[Array], run: InterpreterRun, *, wide: bool
    ) -> tuple[Array, ...]:
        """Return the results of the plan for a shape."""
        template = shape.variant.planned
        rows = None
        if template.growth is not None:
            rows = extended(template.growth, template.numbers.evaluate(shape.values), arrays, run)
        in_place = [np.ascontiguousarray(arrays[k], value.dtype) for k, value in template.caller_inputs]
        grown = NOWHERE if rows is None else rows.room.addresses
        external = np.append(grown, [array.ctypes.data for array in in_place]) if in_place else grown
        workspace, plan = self.take(shape, external)
        arrays = [arrays[k] for k in template.filled]
        try:
            results = run.run_plan(plan, arrays, wide=wide)
        except Exception:
            self.give_back(shape, workspace)
            raise  # after an interrupt the workspace is not reused: a thread may still write to its memory
        self.give_back(shape, workspace)
        if rows is not None:
            run.grow_variables(rows)
            last = rows.successor
            if not isinstance(last, Successor) or last.variant is not shape.variant or last.room is not rows.room:
                last = Successor.of(shape.variant, rows.room, run.variables, self._names, compares=shape.compares)
            rows.successor = last
        return results

    def explained(self) -> str:
        """Return a sentence on how other shapes are planned, for `explain`; empty before a second shape."""
        return self.families.explained()

    def next(
        self, given: Sequence[TensorType], differences: RunDifferences | None, variables: Variables
    ) -> tuple[BoundShape, list[Array]] | None:
        """Return the plan that has appended the last rows, and the values of the variables that it reads.

        None if it is not valid for these inputs and variables. Faster than `find`.
        """
        rows = variables.rows
        last = None if rows is None else rows.successor
        if rows is None or not isinstance(last, Successor) or last.compares != (differences is not None):
            return None
        values, held = last.values(given, rows.length), last.held(variables)
        if values is None or held is None or last.variant not in self.families.recent:
            return None
        return BoundShape(last.variant, values, last.compares), held


_all: WeakSet[TracedPlans] = WeakSet()


def _unlock() -> None:
    """Recreate the locks after a fork, as other threads of the parent may have held them."""
    for plans in _all:
        plans.lock = Lock()


after_fork_in_child(_unlock)

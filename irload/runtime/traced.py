"""Plans of a model's graph for many shapes: traced with symbols for the input dims, bound to each shape."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import field
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakSet

from irload.core.element import ElementType
from irload.core.pause import uncollected
from irload.core.tensor import Array, TensorType
from irload.core.trace import Trace
from irload.errors import IRError, LimitExceeded, OutOfMemory, out_of_memory
from irload.graph import Node
from irload.model import Model
from irload.options import Options
from irload.plan.backends.base import SharedData
from irload.plan.folding import Folding
from irload.plan.interpreter import InterpreterRun
from irload.plan.sanitizing import is_on
from irload.plan.schedule import State, schedule_graph
from irload.record import record
from irload.runtime.growing import Successor, extended
from irload.runtime.kept import KeptPlans
from irload.safety.limits import bounded
from irload.system.forks import unforked
from irload.system.portable import after_fork_in_child
from irload.validation.differences import RunDifferences

if TYPE_CHECKING:
    from irload.plan.executor import Executor
    from irload.plan.traced.pattern import Symbols
    from irload.plan.traced.template import Template
    from irload.plan.traced.workspace import Workspace
    from irload.plan.variables import GrownRows, Variables

VARIANTS = 8
"""Maximum number of traced plans of a model; the least recently used are dropped."""
REUSE = 4
"""Shapes per traced plan below which, after `VARIANTS` of one pattern, shapes are planned separately."""
SHAPES = 256
"""Maximum number of shapes for which the traced plan is looked up by shape."""
ENDS = (ArithmeticError, AssertionError, AttributeError, IRError, LookupError, TypeError, ValueError)
"""Errors that end a trace: of planning, which is repeated without symbols, or of code that does not support sizes."""


class NotBound(Exception):
    """A traced plan cannot be bound to a shape for which its guards hold."""


@record(eq=False)
class Variant:
    """A traced plan, the symbols and element types of its inputs, and its idle workspaces."""

    template: Template
    symbols: Symbols
    elements: Sequence[ElementType]
    idle: list[Workspace] = field(default_factory=list["Workspace"])


@record(eq=False)
class BoundShape:
    """A traced plan for the shapes of an inference."""

    variant: Variant
    values: tuple[int, ...]
    compares: bool


@record(frozen=False, eq=False)
class _Family:
    """The traced plans of one pattern of inputs. `bound`: shapes that use one of them; `reason`: of a failure."""

    variants: list[Variant] = field(default_factory=list[Variant])
    traced: int = 0
    bound: int = 0
    failed: int = 0
    reason: str = ""
    kept: int = 0
    """The number of stored plans, as far as they were looked up."""
    complete: bool = False
    """True once all stored plans were looked up."""


class TracedPlans:
    """Traced plans of a model. Thread-safe.

    The first shape without values of variables is planned alone, except that of a model with variables whose plans are
    stored: prompts differ in length.
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
        traces: bool = True,
    ) -> None:
        self._model = model
        self._options = options
        self._folding = folding
        self._shared = shared
        self._declared = [p.outputs[0].type.shape for p in model.parameters]
        self._variables = {n: n.outputs[0].type.shape for n in reads}
        self._families: dict[Hashable, _Family] = {}
        self._recent: OrderedDict[Variant, _Family] = OrderedDict()
        self._shapes: OrderedDict[Hashable, BoundShape | None] = OrderedDict()
        """By shape; None for the one that is planned alone."""
        self._alone: Hashable = None
        """The shape that is planned alone."""
        self._traces = traces
        """False if plans are restored only."""
        self.kept = kept
        """The plans that other processes have stored."""
        self.lock = Lock()
        _all.add(self)

    @property
    def applies(self) -> bool:
        """False if every shape is planned alone: no dim is dynamic, or the options exclude traced plans."""
        options = self._options
        dynamic = any(not shape.is_static for shape in (*self._declared, *self._variables.values()))
        return dynamic and options.optimize and not options.tune and not is_on()

    def find(
        self, given: Sequence[TensorType], differences: RunDifferences | None, state: State | None = None
    ) -> BoundShape | None:
        """The traced plan for inputs and variables of these types; None if this shape is planned alone."""
        held = () if state is None else state.values()
        key = differences is None, state is None, *(t and (t.element.name, t.shape) for t in (*given, *held))
        with self.lock:
            found = self._shapes.get(key)
            if found is not None:
                self._shapes.move_to_end(key)
                if found.variant in self._recent:
                    self._recent.move_to_end(found.variant)
                return found
            begins = not any(held) and (self.kept is None and state is not None if self._variables else True)
            if self._alone is None and begins:
                self._alone = key
                self._shapes[key] = None
                if self.kept is None:
                    return None
            elif key in self._shapes and not self._recent:
                return None
        with unforked, self.lock:  # in this order: a fork waits for the threads inside, which may need the lock
            traces = self._traces and key != self._alone
            found = self._shapes.get(key) or self._found(given, differences, state, traces=traces)
            if found is not None:
                self._shapes[key] = found
                if len(self._shapes) > SHAPES:
                    self._shapes.popitem(last=False)
            return found

    def take(self, shape: BoundShape, rows: GrownRows | None = None) -> tuple[Workspace, Executor]:
        """An idle workspace, and in it the plan for a shape and variables that grow.

        Raises LimitExceeded and OutOfMemory.
        """
        with self.lock:
            workspace = shape.variant.idle.pop() if shape.variant.idle else None
        if workspace is None:
            with unforked:
                from irload.plan.traced.workspace import Workspace

                workspace = Workspace(shape.variant.template)
        external = () if rows is None else rows.room.addresses
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
                self._drop(shape.variant, error)
                raise NotBound(f"{type(error).__name__}: {error}") from error
        return workspace, plan

    def _drop(self, variant: Variant, error: Exception) -> None:
        """Plan the shapes of a plan that cannot be bound separately from now on."""
        with self.lock:
            family = self._recent.pop(variant, None)
            if family is not None:
                family.variants.remove(variant)
                family.failed, family.reason = VARIANTS, f"{type(error).__name__}: {error}"
            self._shapes = OrderedDict((key, None) for key in list(self._shapes)[:1])

    def give_back(self, shape: BoundShape, workspace: Workspace) -> None:
        """Return a workspace to the idle ones."""
        with self.lock:
            shape.variant.idle.append(workspace)

    def run(
        self, shape: BoundShape, arrays: Sequence[Array], run: InterpreterRun, *, wide: bool = False
    ) -> tuple[Array, ...]:
        """The results of the plan for a shape."""
        template = shape.variant.template
        rows = None
        if template.growth is not None:
            rows = extended(template.growth, template.numbers.evaluate(shape.values), arrays, run)
            arrays = [arrays[k] for k in template.growth.filled]
        workspace, plan = self.take(shape, rows)
        try:
            results = run.run_plan(plan, arrays, wide=wide)
        except Exception:
            self.give_back(shape, workspace)
            raise  # only an interrupt may leave a thread that still writes to the memory
        self.give_back(shape, workspace)
        if rows is not None:
            run.grow_variables(rows)
            last = rows.successor
            if not isinstance(last, Successor) or last.variant is not shape.variant or last.room is not rows.room:
                last = Successor.of(shape.variant, rows.room, compares=shape.compares)
            rows.successor = last
        return results

    def next(
        self, given: Sequence[TensorType], differences: RunDifferences | None, variables: Variables
    ) -> BoundShape | None:
        """The plan that has extended the variables, if it serves inputs of these types too; a shortcut for `find`."""
        rows = variables.rows
        last = None if rows is None or variables.separate else rows.successor
        if rows is None or not isinstance(last, Successor) or last.compares != (differences is not None):
            return None
        values = last.values(given, rows.length)
        if values is None or last.variant not in self._recent:
            return None
        return BoundShape(last.variant, values, last.compares)

    def explained(self) -> str:
        """How shapes are planned, for explanations; empty if this is not known yet."""
        if self._recent:
            return "other shapes: one plan, whose sizes are computed when a shape is bound"
        reasons = [family.reason for family in self._families.values() if family.reason]
        return f"other shapes: planned separately, because {reasons[0]}" if reasons else ""

    def _found(
        self, given: Sequence[TensorType], differences: RunDifferences | None, state: State | None, *, traces: bool
    ) -> BoundShape | None:
        """A traced plan whose guards hold, else a stored one, else a new one, if it `traces`."""
        from irload.plan.traced.pattern import Symbols

        held = {} if state is None else {n: t for n, t in state.items() if t is not None}
        declared = [*self._declared, *(self._variables[n] for n in held)]
        types = [*given, *held.values()]
        shapes = [t.shape.static for t in types]
        symbols, separate = Symbols.of(declared, shapes), Symbols.of(declared, shapes, separate=True)
        elements = None if state is None else tuple(held), *(t.element.name for t in types)
        several = [symbols] if separate == symbols else [symbols, separate]  # whose plans serve equal dims, too
        pairs = [(self._families.setdefault((s.pattern, elements, differences is None), _Family()), s) for s in several]
        for family, own in pairs:
            found = next((v for v in family.variants if v.template.holds(own.values)), None)
            if found is not None:
                return self._bound(family, found, own, differences)
        names = [self._name(s, types, differences, held) if self.kept is not None else "" for s in several]
        for name, (family, own) in zip(names, pairs, strict=True):
            found = self._restored(name, family, own, types)
            if found is not None:
                return self._bound(family, found, own, differences)
        family = pairs[0][0]
        if not traces or not self._is_worthwhile(family, symbols):
            return None
        found = self._traced(family, symbols, types, differences, state)
        if found is None:
            return None
        if self.kept is not None and family.kept < VARIANTS:
            self.kept.keep(f"{names[0]} {family.kept}", found.template)
            family.kept += 1
        return self._bound(family, found, symbols, differences)

    def _bound(
        self, family: _Family, found: Variant, symbols: Symbols, differences: RunDifferences | None
    ) -> BoundShape:
        """A traced plan for values of its symbols, which is used now."""
        family.bound += 1
        self._recent.move_to_end(found)
        return BoundShape(found, symbols.values, differences is not None)

    def _name(
        self, symbols: Symbols, types: Sequence[TensorType], differences: RunDifferences | None, held: Iterable[Node]
    ) -> str:
        """The name of a pattern of inputs for stored plans."""
        variables = [node.op.attributes["variable_id"] for node in held]
        return repr((symbols.pattern, [t.element.name for t in types], variables, differences is None, self._declared))

    def _restored(self, name: str, family: _Family, symbols: Symbols, types: Sequence[TensorType]) -> Variant | None:
        """The first stored plan whose guards hold. Plans after it are restored when they are needed."""
        while self.kept is not None and not family.complete:
            template = None
            with suppress(IRError, MemoryError), uncollected(), bounded(self._options.limits):
                template = self.kept.find(f"{name} {family.kept}", self._options, self._shared)
            if template is None:
                family.complete = True
                break
            family.kept += 1
            found = self._added(family, template, symbols, types)
            if template.holds(symbols.values):
                return found
        return None

    @staticmethod
    def _is_worthwhile(family: _Family, symbols: Symbols) -> bool:
        """False if tracing these shapes has failed before, or created a plan for few shapes only."""
        if not symbols.values or (family.failed and not family.traced) or family.failed >= VARIANTS:
            return False
        if family.traced >= VARIANTS and family.bound < REUSE * family.traced:
            family.reason = "plans depend on the sizes"
            return False
        return True

    def _traced(
        self,
        family: _Family,
        symbols: Symbols,
        types: Sequence[TensorType],
        differences: RunDifferences | None,
        state: State | None,
    ) -> Variant | None:
        """Trace a plan. None if planning ends at code that requires numbers, or fails."""
        try:
            with uncollected(), bounded(self._options.limits):
                template = self._template(symbols, types, differences, state)
        except (LimitExceeded, OutOfMemory, MemoryError) as error:
            family.reason = str(error)
            family.failed += 1
            return None
        except ENDS as error:
            family.reason = f"{type(error).__name__}: {error}"
            family.failed += 1
            return None
        return self._added(family, template, symbols, types)

    def _added(self, family: _Family, template: Template, symbols: Symbols, types: Sequence[TensorType]) -> Variant:
        """Add a plan to its family."""
        found = Variant(template, symbols, [t.element for t in types])
        family.variants.insert(0, found)
        family.traced += 1
        self._recent[found] = family
        if len(self._recent) > VARIANTS:
            dropped, other = self._recent.popitem(last=False)
            other.variants.remove(dropped)
        return found

    def _template(
        self,
        symbols: Symbols,
        types: Sequence[TensorType],
        differences: RunDifferences | None,
        state: State | None,
    ) -> Template:
        from irload.plan.traced.planning import traced_program
        from irload.plan.traced.template import Template

        trace, limits = Trace(), self._options.limits
        known = self._model.inferred if limits == self._model.limits else None
        traced = iter(symbols.traced(types, trace))
        given = [next(traced) for _ in self._declared]
        state = None if state is None else {n: t and next(traced) for n, t in state.items()}
        schedule = schedule_graph(self._model, given, self._folding, limits, known, state=state)
        if differences is not None:
            differences.require_none(self._model, given, schedule.types)
        if schedule.part is None or not schedule.is_static:
            raise ValueError("some shapes depend on values")
        template = Template(traced_program(schedule.part, trace, self._options), self._options, self._shared)
        if not template.holds(symbols.values):
            raise AssertionError("the guards do not hold for the traced shape")
        return template


_all: WeakSet[TracedPlans] = WeakSet()


def _unlock() -> None:
    """Recreate the locks after a fork, as other threads of the parent may have held them."""
    for plans in _all:
        plans.lock = Lock()


after_fork_in_child(_unlock)

"""The traced plans of a model, by the pattern of input shapes: looks plans up, restores them from files, or traces."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

from irload.core.element import ElementType
from irload.core.pause import uncollected
from irload.core.tensor import TensorType
from irload.core.trace import Trace
from irload.errors import IRError, LimitExceeded, OutOfMemory
from irload.graph import Node
from irload.model import Model
from irload.options import Options
from irload.plan.backends.base import SharedData
from irload.plan.folding import Folding
from irload.plan.schedule import State
from irload.plan.scheduling import schedule_graph
from irload.record import record
from irload.runtime.kept import KeptPlans
from irload.safety.limits import bounded
from irload.validation.differences import RunDifferences

if TYPE_CHECKING:
    from irload.core.shape import Shape
    from irload.plan.tail import Tail
    from irload.plan.traced.pattern import Symbols
    from irload.plan.traced.remainder import InterpretedRemainder
    from irload.plan.traced.template import Template
    from irload.plan.traced.workspace import Workspace

VARIANTS = 8
"""Maximum number of traced plans of a model; the least recently used are dropped."""
PATTERNS = 256
"""Maximum number of patterns of input shapes whose plans are recorded."""
REUSE = 4
"""Mean number of shapes per plan below which, after `VARIANTS` plans of one pattern, shapes are planned separately."""
TAIL_VARIANTS = 4
"""Like VARIANTS, for a tail: the plans of all patterns are counted, because dims that depend on values vary freely."""
ENDS = (ArithmeticError, AssertionError, AttributeError, IRError, LookupError, TypeError, ValueError)
"""Errors that end a trace. The shape is then planned without symbols, where an error with another cause recurs."""


@record(eq=False)
class Variant:
    """A traced plan, the symbols and element types of its inputs, and its idle workspaces.

    `template`: the plan of the first nodes, None if they are too few; `remainder`: the nodes that run after the plan,
    None if it runs the entire graph. `passed`: for a tail that calculates nothing, the inputs that are its results.
    `holds`: returns True if all guards hold for values of the symbols. `read`: the inputs that the plan of an entire
    tail reads, all except values that are known from shapes; None for other graphs, whose plans read all inputs.
    """

    template: Template | None
    holds: Callable[[Sequence[int]], bool]
    symbols: Symbols
    elements: Sequence[ElementType]
    remainder: InterpretedRemainder | None = None
    passed: tuple[int, ...] | None = None
    read: Sequence[int] | None = None
    idle: list[Workspace] = field(default_factory=list["Workspace"])

    @property
    def planned(self) -> Template:
        """The plan. Raises AssertionError if no nodes are planned."""
        assert self.template is not None
        return self.template


@record(eq=False)
class BoundShape:
    """A traced plan, and the values of its symbols for the shapes of an inference.

    `compares`: whether inferred types are compared with the file.
    """

    variant: Variant
    values: tuple[int, ...]
    compares: bool


@record(frozen=False, eq=False)
class Family:
    """The traced plans of one pattern of input shapes.

    `plans_added`: the number of plans traced or restored so far; `shapes_bound`: the number of shapes that use them;
    `traces_failed`: the number of traces that failed; `reason`: why the last one failed.
    """

    variants: list[Variant] = field(default_factory=list[Variant])
    plans_added: int = 0
    shapes_bound: int = 0
    traces_failed: int = 0
    reason: str = ""
    plans_stored: int = 0
    """The number of stored plans that this process has restored or stored."""
    all_restored: bool = False
    """True after all stored plans were restored."""


class PlanFamilies:
    """The traced plans of a model. Not thread-safe.

    `declared` and `variables`: the declared shapes of the inputs and of the variables that are read; `kept`: the plans
    that other processes have stored; `tail`: the part of the model that is planned, None for the entire model.
    """

    def __init__(
        self,
        model: Model,
        declared: Sequence[Shape],
        variables: Mapping[Node, Shape],
        options: Options,
        folding: Folding,
        shared: SharedData,
        kept: KeptPlans | None,
        tail: Tail | None,
    ) -> None:
        self.model = model
        self._tail = tail
        self._declared = declared
        self._variables = variables
        self._options = options
        self.folding = folding
        self.shared = shared
        self.kept = kept
        self._by_pattern: dict[Hashable, Family] = {}
        self.recent: OrderedDict[Variant, Family] = OrderedDict()
        """All plans, least recently used first."""

    def find(
        self, given: Sequence[TensorType], differences: RunDifferences | None, state: State | None, *, traces: bool
    ) -> BoundShape | None:
        """Return a plan whose guards hold: an existing one, else a stored one, else, with `traces`, a new one."""
        from irload.plan.traced.pattern import Symbols

        held = {} if state is None else {n: t for n, t in state.items() if t is not None}
        declared = [*self._declared, *(self._variables[n] for n in held)]
        types = [*given, *held.values()]
        shapes = [t.shape.static if t.value is None else tuple(t.value.ravel().tolist()) for t in types]
        elements = None if state is None else tuple(held), *(t.element.name for t in types)
        pairs: list[tuple[Family, Symbols]] = []
        for separate in (False, True) if self._tail is None else (True,):
            candidate = Symbols.of(declared, shapes, separate=separate)
            if pairs and candidate == pairs[0][1]:
                break
            key = candidate.pattern, candidate.negative, elements, differences is None
            family = self._family_of(key)
            variant = next((v for v in family.variants if v.holds(candidate.values)), None)
            if variant is not None:
                return self._bind(family, variant, candidate, differences)
            pairs.append((family, candidate))
        names = [
            self._stored_name(candidate, types, differences, held) if self.kept is not None else ""
            for _, candidate in pairs
        ]
        for name, (family, candidate) in zip(names, pairs, strict=True):
            variant = self._restore(name, family, candidate, types)
            if variant is not None:
                return self._bind(family, variant, candidate, differences)
        family, symbols = pairs[0]
        if not traces or not self._is_worthwhile(family, symbols):
            return None
        variant = self._try_to_trace(family, symbols, types, differences, state)
        if variant is None:
            return None
        if self.kept is not None and variant.template and not variant.remainder and family.plans_stored < VARIANTS:
            self.kept.keep(f"{names[0]} {family.plans_stored}", variant.template)
            family.plans_stored += 1
        return self._bind(family, variant, symbols, differences)

    def _family_of(self, key: Hashable) -> Family:
        """Return the plans of a pattern. If there are PATTERNS already, the oldest one without plans is removed."""
        family = self._by_pattern.get(key)
        if family is None:
            if len(self._by_pattern) >= PATTERNS:
                unused = (k for k, f in self._by_pattern.items() if not f.variants)
                self._by_pattern.pop(next(unused, None), None)
            family = self._by_pattern[key] = Family()
        return family

    def drop(self, variant: Variant, error: Exception) -> None:
        """Remove a plan that cannot be bound, and stop tracing plans of its family."""
        family = self.recent.pop(variant, None)
        if family is not None:
            family.variants.remove(variant)
            family.traces_failed, family.reason = VARIANTS, f"{type(error).__name__}: {error}"

    def explained(self) -> str:
        """Return a sentence on how other shapes are planned, for `explain`; empty before a second shape."""
        if self.recent:
            return "other shapes: one plan, whose sizes are computed when a shape is bound"
        reasons = [family.reason for family in self._by_pattern.values() if family.reason]
        return f"other shapes: planned separately, because {reasons[0]}" if reasons else ""

    def _bind(
        self, family: Family, variant: Variant, symbols: Symbols, differences: RunDifferences | None
    ) -> BoundShape:
        """Return a traced plan with the values of its symbols, and mark it as recently used."""
        family.shapes_bound += 1
        self.recent.move_to_end(variant)
        return BoundShape(variant, symbols.values, differences is not None)

    def _stored_name(
        self, symbols: Symbols, types: Sequence[TensorType], differences: RunDifferences | None, held: Iterable[Node]
    ) -> str:
        """Return the name of a pattern in the store of plans."""
        variables = [node.op.attributes["variable_id"] for node in held]
        return repr((symbols.pattern, [t.element.name for t in types], variables, differences is None, self._declared))

    def _restore(self, name: str, family: Family, symbols: Symbols, types: Sequence[TensorType]) -> Variant | None:
        """Restore stored plans one by one, and return the first whose guards hold; None if no guards hold."""
        while self.kept is not None and not family.all_restored:
            template = None
            with suppress(IRError, MemoryError), uncollected(), bounded(self._options.limits):
                template = self.kept.find(f"{name} {family.plans_stored}", self._options, self.shared)
            if template is None:
                family.all_restored = True
                break
            family.plans_stored += 1
            variant = self._add(family, Variant(template, template.holds, symbols, [t.element for t in types]))
            if template.holds(symbols.values):
                return variant
        return None

    def _is_worthwhile(self, family: Family, symbols: Symbols) -> bool:
        """False if tracing has failed for this pattern, or if plans serve only few shapes each."""
        if (family.traces_failed and not family.plans_added) or family.traces_failed >= VARIANTS:
            return False
        if self._tail is None and not symbols.values:
            return False  # no dim is a symbol, so the plan would serve only this shape
        served, max_count = ([family], VARIANTS) if self._tail is None else (self._by_pattern.values(), TAIL_VARIANTS)
        added = sum(f.plans_added for f in served)
        if not added and sum(f.traces_failed for f in served) >= max_count:
            return False
        if added >= max_count and sum(f.shapes_bound for f in served) < REUSE * added:
            family.reason = "plans depend on the sizes"
            return False
        return True

    def _try_to_trace(
        self,
        family: Family,
        symbols: Symbols,
        types: Sequence[TensorType],
        differences: RunDifferences | None,
        state: State | None,
    ) -> Variant | None:
        """Trace a plan and add it. None if planning fails, or reaches code that requires numbers instead of sizes."""
        try:
            with uncollected(), bounded(self._options.limits):
                variant = self._trace(symbols, types, differences, state)
        except (LimitExceeded, OutOfMemory, MemoryError) as error:
            family.reason = str(error)
            family.traces_failed += 1
            return None
        except ENDS as error:
            family.reason = f"{type(error).__name__}: {error}"
            family.traces_failed += 1
            return None
        return self._add(family, variant)

    def _add(self, family: Family, variant: Variant) -> Variant:
        """Add a plan to its family. The least recently used plan of the model is dropped if there are too many."""
        family.variants.insert(0, variant)
        family.plans_added += 1
        self.recent[variant] = family
        if len(self.recent) > VARIANTS:
            dropped, other = self.recent.popitem(last=False)
            other.variants.remove(dropped)
        return variant

    def _trace(
        self,
        symbols: Symbols,
        types: Sequence[TensorType],
        differences: RunDifferences | None,
        state: State | None,
    ) -> Variant:
        """Trace a plan. Raises ValueError if no part of the graph can be planned."""
        from irload.plan.tail import passed_through
        from irload.plan.traced.planning import traced_program
        from irload.plan.traced.remainder import InterpretedRemainder
        from irload.plan.traced.template import Template

        trace, limits, graph = Trace(), self._options.limits, self._tail or self.model
        known = self.model.inferred if limits == self.model.limits else None
        traced = iter(symbols.traced(types, trace))
        given = [next(traced) for _ in self._declared]
        state = None if state is None else {n: t and next(traced) for n, t in state.items()}
        schedule = schedule_graph(graph, given, self.folding, limits, known, state=state)
        if differences is not None:
            differences.require_none(graph, given, schedule.types)
        passed = None if self._tail is None else passed_through(self._tail, schedule.types)
        if passed is not None:
            trace.close()
            return Variant(None, trace.test(), symbols, [t.element for t in types], passed=passed)
        template = None
        if schedule.part is not None:
            program = traced_program(schedule.part, trace, self._options, grows=self._tail is None)
            template = Template(program, self._options, self.shared)
        elif all(part.tail is None for part in schedule.tails):
            raise ValueError("some shapes depend on values")
        trace.close()
        holds = trace.test() if template is None else template.holds
        if not holds(symbols.values):
            raise AssertionError("the guards do not hold for the traced shape")
        remainder = None if schedule.entire is not None else InterpretedRemainder(schedule, trace)
        read = None if self._tail is None else [k for k, tensor in enumerate(given) if tensor.value is None]
        return Variant(template, holds, symbols, [t.element for t in types], remainder, read=read)

"""Aliases: which values lie in the buffer of another one, and by which view."""

from __future__ import annotations

from dataclasses import replace

from irload.plan.ir.program import Program, Step, Value, walk_values
from irload.plan.ir.steps import Concat, ViewOp
from irload.plan.ir.strides import Strided, View
from irload.plan.memory.layout import PLANAR, Layout
from irload.plan.memory.requests import MemoryRequests
from irload.record import record


@record()
class Alias:
    """A value that is `source`, or a view of it."""

    source: Value
    view: View | None = None


class Aliases:
    """Who shares a buffer with whom. Roots are the values that have a buffer of their own."""

    def __init__(self, program: Program, requests: MemoryRequests) -> None:
        self._program = program
        self._requests = requests
        self.layouts = {v: replace(layout, border=()) for v, layout in requests.layouts.items()}
        self.uses = _uses(program)
        """The steps that take each value, each once."""
        self._aliases: dict[Value, Alias] = {}
        self._nearer: dict[Value, Value] = {}
        """Shortcuts on the way to a root."""
        self._seen: set[Value] = set()
        self._find_views()
        self._find_slices()
        self._find_in_place()
        self._grant_borders()

    def alias(self, value: Value) -> Alias | None:
        """What a value is an alias of, None for roots."""
        return self._aliases.get(value)

    def layout(self, value: Value) -> Layout:
        """How a value lies if it has a buffer of its own."""
        return self.layouts.get(value, PLANAR)

    def is_view(self, value: Value) -> bool:
        """True for results of a ViewOp that need no copy."""
        return value in self._seen

    def root(self, value: Value) -> Value:
        """The value whose buffer holds this one."""
        passed: list[Value] = []
        at = self._nearer.get(value, value)
        while at in self._aliases:
            passed.append(at)
            at = self._nearer.get(self._aliases[at].source, self._aliases[at].source)
        self._nearer.update(dict.fromkeys((value, *passed), at))  # chains of views may be long
        return at

    def _find_views(self) -> None:
        """The results of ViewOps → views of their inputs, wherever strides describe them."""
        strided: dict[Value, Strided] = {}
        for step in self._program.steps:
            if not isinstance(step, ViewOp) or step.inputs[0].is_constant:
                continue
            source = step.inputs[0]
            if source not in strided and not self.layout(source).has_strides:
                continue
            if self.layout(step.output).storage != self.layout(source).storage:
                continue
            view = step.view
            seen = view.of(strided[source] if source in strided else self.layout(source).strided(source.shape))
            if seen is not None:
                strided[step.output] = seen
                self._aliases[step.output] = Alias(source, view)
                self._seen.add(step.output)

    def _find_slices(self) -> None:
        """Values that only a Concat takes → slices of its result."""
        producers = self._program.producers()
        for step in self._program.steps:
            if not isinstance(step, Concat) or step.output in self._aliases:
                continue
            start = 0
            for value in step.inputs:
                ranges = [(0, n, 1) for n in step.output.shape]
                ranges[step.axis] = (start, value.shape[step.axis], 1)
                start += value.shape[step.axis]
                free = value not in self._aliases and self._only(value, step)
                writable = producers.get(value) in self._requests.into_slices
                if free and writable and self._alike(value, step.output):
                    self._aliases[value] = Alias(step.output, View("slice", ranges=tuple(ranges)))

    def _find_in_place(self) -> None:
        """Results → the buffer of an input that nothing needs afterwards, where the step may write over it."""
        when = {step: k for k, step in enumerate(self._program.steps)}
        kept = {*self._program.inputs, *self._program.outputs}
        last: dict[Value, int] = {}
        """The last step that takes what lies in a buffer, by its root."""
        for value in walk_values(self._program) if self._requests.in_place else ():
            root = self.root(value)
            final = len(when) if value in kept else max((when[s] for s in self.uses.get(value, ())), default=-1)
            last[root] = max(last.get(root, -1), final)
        written: set[Value] = set()
        for step, positions in self._requests.in_place.items():
            if step.output in self._aliases:
                continue
            for value in (step.inputs[k] for k in positions):
                if value.is_constant or (value in self._aliases and value not in written):
                    continue
                root = self.root(value)
                taken = [v for v in step.inputs if v is not value and not v.is_constant and self.root(v) is root]
                same = value.shape == step.output.shape and value.dtype == step.output.dtype
                if same and not taken and last[root] == when[step] and self._alike(value, step.output):
                    self._aliases[step.output] = Alias(value)
                    written.add(step.output)
                    last[root] = last[step.output]
                    break

    def _grant_borders(self) -> None:
        """Borders around values that share their buffer with nothing and have one consumer, which fills them."""
        shared = {self.root(v) for v in self._aliases}
        for value, layout in self._requests.layouts.items():
            alone = len(self.uses.get(value, ())) == 1 and value not in self._program.returned
            if layout.border and alone and value not in self._aliases and value not in shared:
                self.layouts[value] = layout

    def _only(self, value: Value, step: Step) -> bool:
        """True where nothing but the step needs a value."""
        return self.uses.get(value) == [step] and value not in self._program.returned

    def _alike(self, a: Value, b: Value) -> bool:
        """True where both lie alike, in a way that strides describe."""
        return self.layout(a) == self.layout(b) and self.layout(a).has_strides


def _uses(program: Program) -> dict[Value, list[Step]]:
    found: dict[Value, list[Step]] = {}
    for step in program.steps:
        for value in dict.fromkeys(step.inputs):
            found.setdefault(value, []).append(step)
    return found

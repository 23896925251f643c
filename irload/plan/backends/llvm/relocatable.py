"""Segments of symbolic steps, bound to shapes. Kernels are selected once for all steps of a group.

To bind a shape, the kernels of one step of each group are selected, with symbols if the selection supports them, else
with numbers. The pointers of the other steps are computed by relocation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from irload.errors import IRError
from irload.options import Options
from irload.plan.backends.base import BoundSizes, Executable, SharedData
from irload.plan.backends.llvm.executable import BoundTable
from irload.plan.backends.llvm.grouping import grouped
from irload.plan.backends.llvm.launching import TableForm
from irload.plan.backends.llvm.parts import Codes, TablePart, Term, Words, pointer_term
from irload.plan.backends.llvm.relocation import RecordingSelector, RelocatedArguments, select
from irload.plan.backends.llvm.selector import PackedConstants
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.traced_selection import TracedSelection
from irload.plan.ir.program import Step, Value
from irload.plan.memory.aliases import Aliases

UNSUPPORTED = (ArithmeticError, AssertionError, AttributeError, IRError, LookupError, TypeError, ValueError)
"""Errors raised by selections that do not support symbols."""
FORMS = 64
"""Maximum number of forms of tables that are cached."""
SETS = 16
"""Maximum number of sets of changed sizes for which the groups that depend on them are cached."""
FAILURES = 8
"""Consecutive failed selections with symbols after which steps of the same kind are selected with numbers."""
TRACES = 16
"""Maximum number of selections of a group with symbols. For further shapes it is selected with numbers."""


class RelocatableSegment:
    """A segment of symbolic steps in groups."""

    def __init__(
        self,
        steps: Sequence[Step],
        aliases: Aliases,
        numbering: Mapping[Value, int],
        target: Target,
        options: Options,
        shared: SharedData,
    ) -> None:
        self._steps = steps
        self._target = target
        self._options = options
        self._packs: PackedConstants = shared.setdefault("llvm", WeakValueDictionary())
        self._groups = grouped(steps, aliases, numbering)
        self._relocations = [RelocatedArguments(group) for group in self._groups]
        self.traced: list[list[TracedSelection]] = [[] for _ in self._groups]
        """The traced selections of each group."""
        self._traces = [0] * len(self._groups)
        """The number of times that the kernels of each group were selected with symbols."""
        self._failures: Counter[type[Step]] = Counter()
        """For each kind of step, the number of consecutive failed selections with symbols."""
        self._changes: dict[Hashable, Sequence[int]] = {}
        """The groups that differ from the previous binding, by the key of the sizes that differ."""
        self._forms: dict[Sequence[Sequence[TablePart]], TableForm] = {}
        self._depends: Sequence[int] | None = None
        self._codes = Codes(target, options.threads)

    def bind(self, sizes: BoundSizes, previous: Executable | None) -> BoundTable:
        """The segment for one shape."""
        last = previous if isinstance(previous, BoundTable) else None
        dependent = self._dependent(sizes)
        if last is None:
            changed: Sequence[int] = range(len(self._groups))
            groups: list[Sequence[TablePart]] = [()] * len(changed)
            words = [Words(())] * len(changed)
        else:
            changed = self._changed(sizes)
            if not changed:
                return last
            changed = dependent if 2 * len(changed) > len(dependent) else changed  # the sums of `dependent` are cached
            groups, words = list(last.form.groups), list(last.words)
        varies = frozenset(dependent)
        untraced = [k for k in changed if k in varies and not self.traced[k]]
        if untraced:
            with self._codes.in_parallel() as codes:
                varies = varies.difference([k for k in untraced if not self._trace(k, sizes, codes)])
        for k in changed:
            groups[k], words[k] = (self._traced(k, sizes) if k in varies else None) or self._selected(k, sizes)
        same = last is not None and all(groups[k] is last.form.groups[k] for k in changed)
        rebound = last.at(changed, words, sizes) if last is not None and same else None
        if rebound is not None:
            return rebound
        return BoundTable(self._steps, self._form(groups, words), words, self._target, sizes)

    def _form(self, groups: Sequence[Sequence[TablePart]], words: Sequence[Words]) -> TableForm:
        """The form of the table of these parts."""
        key = tuple(groups)
        form = self._forms.get(key)
        if form is None:
            form = TableForm(groups, words, self._options.threads)
            if all(part.is_traced for group in groups for part in group):  # else the parts are valid for one shape
                if len(self._forms) >= FORMS:
                    self._forms.clear()
                self._forms[key] = form
        return form

    def _dependent(self, sizes: BoundSizes) -> Sequence[int]:
        """The groups whose launches may differ between shapes.

        Late constants of steps of a group may depend on different sizes, so all steps are tested, here and below.
        """
        if self._depends is None:
            groups = enumerate(self._groups)
            self._depends = tuple(k for k, g in groups if any(map(sizes.depends, g.steps)) or g.is_external)
        return self._depends

    def _changed(self, sizes: BoundSizes) -> Sequence[int]:
        """The groups whose launches may differ from the previous binding."""
        key = sizes.changed, sizes.moved
        changed = self._changes.get(key)
        if changed is None:
            if len(self._changes) >= SETS:
                self._changes.clear()
            changed = self._changes[key] = tuple(
                k
                for k, group in enumerate(self._groups)
                if any(map(sizes.changes, group.steps)) or (sizes.moved and group.is_external)
            )
        return changed

    def _traced(self, index: int, sizes: BoundSizes) -> tuple[Sequence[TablePart], Words] | None:
        """The part of a group from a selection with symbols whose guards hold; None if there is no such selection."""
        for selection in self.traced[index]:
            words = selection.words(sizes.symbols)
            if words is not None:
                return selection.parts, words
        if not self._trace(index, sizes, self._codes):
            return None
        selection = self.traced[index][-1]
        words = selection.words(sizes.symbols)
        return None if words is None else (selection.parts, words)

    def _selected(self, index: int, sizes: BoundSizes) -> tuple[Sequence[TablePart], Words]:
        """The parts of a group from a selection with numbers: one, or one per step if kernels read unknown memory."""
        selector = RecordingSelector(sizes.memory, self._target, self._options, self._packs)
        parts = self._relocated(index, selector, sizes) if len(self._groups[index].steps) > 1 else None
        return parts or tuple(self._separate(index, selector, sizes)), Words([0, selector.temporary_bytes])

    def _relocated(self, index: int, selector: RecordingSelector, sizes: BoundSizes) -> Sequence[TablePart] | None:
        """The part of a group, relocated from its first step; None if its kernels read unknown memory."""
        group, relocation = self._groups[index], self._relocations[index]
        first, launches = select(group.steps[0], selector, sizes)
        in_value = partial(relocation.in_value, first, sizes)

        def argument(pointer: Any) -> Term:
            return relocation.argument(pointer, selector, sizes, in_value)

        try:
            records = [self._codes.record(launch, first.flops, argument) for launch in launches]
        except TypeError:
            return None
        return (TablePart(group.positions, records, selector.kept, self._codes),)

    def _separate(self, index: int, selector: RecordingSelector, sizes: BoundSizes) -> Iterator[TablePart]:
        """The parts of the steps of a group, each selected separately."""
        group = self._groups[index]
        for k, step in zip(group.positions, group.steps, strict=True):
            concrete, launches = select(step, selector, sizes)
            records = [self._codes.record(launch, concrete.flops, pointer_term) for launch in launches]
            keep = [*selector.kept, *(array for launch in launches for array in launch.keep)]
            yield TablePart([k], records, keep, self._codes)

    def _trace(self, index: int, sizes: BoundSizes, codes: Codes) -> bool:
        """Select the kernels of a group with symbols; False if its selections have failed, or are too many."""
        group, relocation = self._groups[index], self._relocations[index]
        kind = type(group.steps[0])
        if self._traces[index] == TRACES or self._failures[kind] == FAILURES:
            return False
        self._traces[index] += 1
        self._failures[kind] += 1
        try:
            symbolic = sizes.symbolic()
            selector = RecordingSelector(symbolic.memory, self._target, self._options, self._packs)
            first, launches = select(group.steps[0], selector, symbolic)
            if any(launch.kernel.streamed is not None for launch in launches):
                raise TypeError("weights to prefetch depend on neighbours")
            selection = TracedSelection(
                symbolic.trace,
                group.positions,
                launches,
                lambda pointer: relocation.argument(pointer, selector, symbolic),
                first,
                selector.temporary_bytes,
                selector.kept,
                codes,
            )
        except UNSUPPORTED:
            return False
        self._failures[kind] = 0
        self.traced[index].append(selection)
        return True

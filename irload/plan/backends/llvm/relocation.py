"""Segments of symbolic steps: kernels are selected once for all steps that differ only in their operands.

The steps of a deep network repeat. Steps of equal fields whose operands have equal symbolic shapes, strides and types
have equal kernels at every shape, whose arguments differ only in addresses. To bind a shape, the kernels of one step of
each group are selected, with symbols if the selection supports them, else with numbers; pointers for the other steps
follow by relocation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from irload.core.tensor import Array
from irload.errors import IRError
from irload.options import Options
from irload.plan.backends.base import BoundSizes, Executable, SharedData, SymbolicSizes
from irload.plan.backends.llvm.kernel import Launch, address
from irload.plan.backends.llvm.launching import Codes, Selected
from irload.plan.backends.llvm.row_table import BoundTable, Tables, Variant
from irload.plan.backends.llvm.selection import TABLE
from irload.plan.backends.llvm.selector import PackedConstants, Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.traced_selection import Operands, TracedSelection, Words, operands_of
from irload.plan.ir.compressed import compressed
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Step, Value
from irload.plan.ir.sized import hashable
from irload.plan.memory.aliases import Aliases
from irload.record import record

UNSUPPORTED = (ArithmeticError, AssertionError, AttributeError, IRError, LookupError, TypeError, ValueError)
"""Errors of selections that require numbers."""
TABLES = 16
"""Maximum number of tables of one arena that are cached for other shapes with the same traced selections."""
SETS = 16
"""Maximum number of sets of changed sizes for which the groups that depend on them are cached."""
FAILURES = 8
"""Selections with symbols that fail for a kind of steps, one after the other, before the kind is left to numbers."""
TRACES = 16
"""Maximum number of selections of a group of steps with symbols; at further shapes they run with numbers."""


@record(eq=False)
class Group:
    """Steps with equal kernels: their positions in the segment, and for each its distinct values in one order.

    `numbers`: for each slot the numbers of the values of all steps; 0 for constants.
    """

    positions: tuple[int, ...]
    steps: tuple[Step, ...]
    values: tuple[tuple[Value, ...], ...]
    numbers: tuple[Array, ...]
    is_external: bool
    """True if values are in memory outside the arena."""


@record(eq=False)
class Read:
    """A constant that the kernels of a step read: `room` bytes from its address.

    `slot`: its index in the values of the step; `how`: its packing, None if it is not packed; `of`: the array that
    kernels of another step read instead, given its value.
    """

    slot: int
    how: Hashable
    array: Array
    room: int
    of: Callable[[Value], Array]


class RecordingSelector(Selector):
    """Records which constants the kernels of a step read."""

    slots: Mapping[Value, int]
    reads: list[Read]
    created: list[Array]

    def record(self, step: Step) -> None:
        """Begin a concrete step."""
        self.begin()
        self.slots = {value: k for k, value in enumerate(_distinct(step))}
        self.reads = []
        self.created = []

    @property
    def kept(self) -> Sequence[Array]:
        """The constants that the kernels read, packed or not."""
        return [*self.constants, *self.packed_weights]

    def stored(self, value: Value) -> Array:
        found = super().stored(value)
        if value.source is not None and value in self.slots:
            self.reads.append(Read(self.slots[value], None, found, 1, super().stored))
        return found

    def own(self, array: Array) -> Array:
        self.created.append(array)
        return super().own(array)

    def packed_constant(self, value: Value, how: Hashable, pack: Callable[[Constant], Array]) -> Array:
        packed = partial(super().packed_constant, how=how, pack=pack)
        found = packed(value)
        if value in self.slots:
            self.reads.append(Read(self.slots[value], how, found, max(found.nbytes, 1), packed))
        return found


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
        self.target = target
        self.options = options
        self._packs: PackedConstants = shared.setdefault("llvm", WeakValueDictionary())
        found: dict[Hashable, list[int]] = {}
        for k, step in enumerate(steps):
            if step.view is not None and aliases.alias(step.output) is not None:
                continue  # a view of memory has no kernels at any shape
            found.setdefault(_signature(step, aliases), []).append(k)
        self._groups = [_group([(k, steps[k]) for k in group], numbering, aliases) for group in found.values()]
        self.traced: list[list[TracedSelection]] = [[] for _ in self._groups]
        """The traced selections of each group."""
        self._traces = [0] * len(self._groups)
        """How often the kernels of each group were selected with symbols."""
        self._failures: Counter[type[Step]] = Counter()
        """How often this failed for each kind of steps since it last succeeded."""
        self._changes: dict[Hashable, tuple[int, ...]] = {}
        """The groups that differ from the previous binding, by the key of the sizes that differ."""
        self._depends: tuple[int, ...] | None = None
        self._codes = Codes(target)
        self._constants: dict[Hashable, tuple[Array, list[Array]]] = {}
        """The addresses of constants of a group, packed or not, and the arrays."""

    def bind(self, sizes: BoundSizes, previous: Executable | None) -> BoundTable:
        """The segment for one shape."""
        before = previous if isinstance(previous, BoundTable) else None
        dependent = self._dependent(sizes)
        if before is not None:
            differing = self._changed(sizes)
            differing = dependent if 2 * len(differing) > len(dependent) else differing  # which share their words
            found = before.at(differing, sizes) if differing else before
            if found is not None:
                return found
        found = [self._traced(k, sizes) for k in dependent]
        variant = dependent, tuple(each and each[0] for each in found)
        tables: Tables = {} if before is None else before.tables
        words = [each[1] for each in found if each is not None]
        table = tables[variant].with_words(*variant, words, sizes) if variant in tables else None
        return table or self._table(sizes, before, dict(zip(dependent, found, strict=True)), tables, variant)

    def _table(
        self,
        sizes: BoundSizes,
        before: BoundTable | None,
        traced: Mapping[int, tuple[TracedSelection, Words] | None],
        tables: Tables,
        variant: Variant,
    ) -> BoundTable:
        """A new table. `traced`: the selections of the groups that depend on sizes, which are the `variant`."""
        selector = RecordingSelector(sizes.memory, self.target, self.options, self._packs)
        groups: list[Sequence[Selected]] = []
        for k, group in enumerate(self._groups):
            found = traced.get(k)
            if found is not None:
                selection, words = found
                selector.temporary_bytes = max(selector.temporary_bytes, words[selection.temporary])
                groups.append([selection.at(words, group.positions, sizes)])
            elif before is None or k in traced:
                groups.append(list(self._selected(k, selector, sizes)))
            else:
                groups.append(before.groups[k])
        temporary, threads = selector.temporary_bytes, self.options.threads
        table = BoundTable(self._steps, groups, self.target, threads, temporary, sizes, tables)
        if None not in variant[1]:
            if len(tables) >= TABLES:
                tables.clear()
            tables[variant] = table
        return table

    def _dependent(self, sizes: BoundSizes) -> tuple[int, ...]:
        """The groups whose launches may differ between shapes."""
        if self._depends is None:
            groups = enumerate(self._groups)
            self._depends = tuple(k for k, g in groups if sizes.depends(g.steps[0]) or g.is_external)
        return self._depends

    def _changed(self, sizes: BoundSizes) -> tuple[int, ...]:
        """The groups whose launches may differ from the previous binding."""
        key = sizes.changed, sizes.moved
        found = self._changes.get(key)
        if found is None:
            if len(self._changes) >= SETS:
                self._changes.clear()
            found = self._changes[key] = tuple(
                k
                for k, group in enumerate(self._groups)
                if sizes.changes(group.steps[0]) or (sizes.moved and group.is_external)
            )
        return found

    def _traced(self, index: int, sizes: BoundSizes) -> tuple[TracedSelection, Words] | None:
        """The selection of a group with symbols whose guards hold, and its words; None if it requires numbers."""
        for _ in range(2):
            for selection in self.traced[index]:
                words = selection.words(sizes.symbols)
                if words is not None:
                    return selection, words
            kind = type(self._groups[index].steps[0])
            if self._traces[index] == TRACES or self._failures[kind] == FAILURES:
                break
            self._traces[index] += 1
            self._failures[kind] = 0 if self._trace(index, sizes) else self._failures[kind] + 1
        return None

    def _selected(self, index: int, selector: RecordingSelector, sizes: BoundSizes) -> Iterator[Selected]:
        """The kernels of a group with numbers; of each step separately if they read memory that is not relocated."""
        group = self._groups[index]
        together = self._relocated(index, selector, sizes) if len(group.steps) > 1 else None
        if together is not None:
            yield together
            return
        for k, step in zip(group.positions, group.steps, strict=True):
            selector.constants, selector.packed_weights = [], []
            own, launches = _select(step, selector, sizes)
            found = [self._codes.launch(launch) for launch in launches]
            yield Selected((k,), own.flops, found, selector.kept)

    def _relocated(self, index: int, selector: RecordingSelector, sizes: BoundSizes) -> Selected | None:
        """The kernels of a group, relocated from its first step; None if they read memory that cannot be relocated."""
        group = self._groups[index]
        selector.constants, selector.packed_weights = [], []
        first, launches = _select(group.steps[0], selector, sizes)
        value_at = partial(_value_at, group, first, sizes)
        try:
            operands = [self._operands(index, launch, selector, sizes, value_at) for launch in launches]
        except TypeError:
            return None
        pointers = [own.pointers(own.distances, sizes) for own in operands]
        found = [self._codes.launch(*each) for each in zip(launches, pointers, strict=True)]
        return Selected(group.positions, first.flops, found, selector.kept)

    def _trace(self, index: int, sizes: BoundSizes) -> bool:
        """Select the kernels of a group with symbols; False if the selection does not support them at this shape."""
        step = self._groups[index].steps[0]
        try:
            symbolic = sizes.symbolic()
            selector = RecordingSelector(symbolic.memory, self.target, self.options, self._packs)
            first, launches = _select(step, selector, symbolic)
            if any(launch.kernel.streamed is not None for launch in launches):
                raise TypeError("weights to prefetch depend on neighbours")
            operands = [self._operands(index, launch, selector, symbolic) for launch in launches]
            temporary = selector.temporary_bytes
            given = launches, operands, first.flops, temporary, selector.kept
            self.traced[index].append(TracedSelection(symbolic.trace, *given, self._codes.code))
        except UNSUPPORTED:
            return False
        return True

    def _operands(
        self,
        index: int,
        launch: Launch,
        selector: RecordingSelector,
        sizes: BoundSizes | SymbolicSizes,
        value_at: Callable[[int], tuple[Array, int] | None] = lambda pointer: None,
    ) -> Operands:
        """The pointers of a launch for each step of a group. Raises TypeError for an address in unknown memory.

        `value_at`: the numbers of values and the distance from them for an address.
        """
        group = self._groups[index]

        def resolved(pointer: Any) -> Array | tuple[Array, Any]:
            if not isinstance(pointer, int):
                return group.numbers[group.values[0].index(pointer.value)], pointer.distance
            found = self._constant(index, pointer, selector, sizes)
            found = value_at(pointer) if found is None else found
            if found is None:
                raise TypeError("a pointer to unknown memory")
            return found

        return operands_of(launch, len(group.steps), resolved)

    def _constant(
        self, index: int, pointer: int, selector: RecordingSelector, sizes: BoundSizes | SymbolicSizes
    ) -> Array | None:
        """For each step of a group the address in a constant that corresponds to a pointer of the first step."""
        for read in selector.reads:
            distance = pointer - address(read.array)
            if 0 <= distance < read.room:
                found = self._addresses(index, read, sizes)
                return None if found is None else found + distance
        if any(0 <= pointer - address(array) < array.nbytes for array in selector.created):
            return np.full(len(self._groups[index].steps), pointer, np.int64)
        return None

    def _addresses(self, index: int, read: Read, sizes: BoundSizes | SymbolicSizes) -> Array | None:
        """The addresses of the constants of each step that correspond to one; None if their strides differ."""
        key, array = (index, read.slot, read.how), read.array
        if key in self._constants:
            return self._constants[key][0]
        values = [values[read.slot] for values in self._groups[index].values]
        concrete = [sizes.value(value) for value in values]
        arrays = [read.of(value) for value in concrete]
        if any(a.strides != array.strides or a.dtype != array.dtype for a in arrays):
            return None
        found = np.array([address(a) for a in arrays], np.int64)
        if all(a.source is b.source for a, b in zip(values, concrete, strict=True)):  # else they depend on the shape
            self._constants[key] = found, arrays
        return found


def _select(step: Step, selector: RecordingSelector, sizes: BoundSizes | SymbolicSizes) -> tuple[Step, list[Launch]]:
    """The concrete step of a symbolic one, and its kernels."""
    concrete = sizes.step(step)
    selector.record(concrete)
    return concrete, TABLE.select(concrete)(concrete, selector)


def _value_at(group: Group, first: Step, sizes: BoundSizes, pointer: int) -> tuple[Array, int] | None:
    """The numbers of the values of all steps that correspond to a pointer of the first step, and its distance."""
    for slot, (value, concrete) in enumerate(zip(group.values[0], _distinct(first), strict=True)):
        if concrete.source is None:
            start, room = sizes.room(value)
            if 0 <= pointer - start < room:
                numbers = group.numbers[slot]
                return numbers, pointer - int(sizes.addresses(numbers[:1])[0])
    return None


def _group(members: Sequence[tuple[int, Step]], numbering: Mapping[Value, int], aliases: Aliases) -> Group:
    positions, steps = zip(*members, strict=True)
    values = tuple(tuple(_distinct(step)) for step in steps)
    numbers = (np.array([numbering.get(v, 0) for v in slot], np.int64) for slot in zip(*values, strict=True))
    is_external = any(v.source is None and aliases.root(v) in aliases.external for v in values[0])
    return Group(positions, steps, values, tuple(numbers), is_external)


def _distinct(step: Step) -> list[Value]:
    return list(dict.fromkeys((*step.inputs, *step.outputs)))


def _signature(step: Step, aliases: Aliases) -> Hashable:
    """Equal for steps whose kernels are equal at every shape, up to addresses."""
    own = tuple(hashable(getattr(step, f.name)) for f in fields(step) if f.name not in ("inputs", "outputs", "origin"))
    values = _distinct(step)
    slots = {value: k for k, value in enumerate(values)}
    order = tuple(tuple(slots[v] for v in side) for side in (step.inputs, step.outputs))
    roots: dict[Value, Value] = {}
    return type(step), own, order, tuple(_described(value, aliases, roots, slots) for value in values)


def _form(constant: Constant) -> Hashable:
    """The form of compressed weights; None if the constant is stored uncompressed."""
    found = compressed(constant)
    if found is None:
        return None
    factors = (found.stored, found.scale, found.zero_point)
    return tuple(f and (f.shape, f.dtype, f.element) for f in factors)


def _described(value: Value, aliases: Aliases, roots: dict[Value, Value], slots: Mapping[Value, int]) -> Hashable:
    """The properties of a value on which kernels depend. `roots`: the first value of the step in each root."""
    shape = value.dtype, hashable(value.shape)
    if value.source is not None:
        stored = value.source.recipe is not None and value.source.recipe.widens
        return "constant", *shape, value.source.dtype, stored, _form(value.source)
    root, position = aliases.root(value), aliases.strided(value)
    first = roots.setdefault(root, value)
    distance = position.offset - aliases.strided(first).offset
    view = aliases.alias(value) is not None
    layout = hashable(aliases.layout(value)), hashable(aliases.layout(root)), aliases.stored_dtype(root)
    return *shape, view, layout, hashable(position.strides), slots[first], hashable(distance)

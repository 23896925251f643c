"""Relocates the pointers of kernels, which are selected for one step of a group, to the other steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from irload.core.size import Deferred
from irload.core.tensor import Array
from irload.plan.backends.base import BoundSizes, SymbolicSizes
from irload.plan.backends.llvm.grouping import Group, distinct_values
from irload.plan.backends.llvm.kernel import Launch, Temporary, address
from irload.plan.backends.llvm.parts import TEMPORARY, VALUES, Term
from irload.plan.backends.llvm.selection import TABLE
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Step, Value
from irload.record import record


@record(eq=False)
class Read:
    """A constant that the kernels of a step read: `room` bytes from the address of `array` on.

    `slot`: its index in the values of the step; `how`: the key of its packing, None if it is not packed; `of`: returns
    the corresponding array for the value of another step.
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
        """Start to record a concrete step."""
        self.begin()
        self.slots = {value: k for k, value in enumerate(distinct_values(step))}
        self.reads = []
        self.created = []

    @property
    def kept(self) -> Sequence[Array]:
        """The constants that the kernels read, packed or not."""
        return [*self.constants, *self.packed_weights]

    def stored(self, value: Value) -> Array:
        array = super().stored(value)
        if value.source is not None and value in self.slots:
            self.reads.append(Read(self.slots[value], None, array, 1, super().stored))
        return array

    def keep_alive(self, array: Array) -> Array:
        self.created.append(array)
        return super().keep_alive(array)

    def packed_constant(self, value: Value, how: Hashable, pack: Callable[[Constant], Array]) -> Array:
        packed = partial(super().packed_constant, how=how, pack=pack)
        array = packed(value)
        if value in self.slots:
            self.reads.append(Read(self.slots[value], how, array, max(array.nbytes, 1), packed))
        return array


class RelocatedArguments:
    """The arguments of kernels for all steps of a group."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._constants: dict[Hashable, tuple[Array, list[Array]]] = {}
        """By slot and packing: the addresses of the constants of all steps, and the arrays."""

    def argument(
        self,
        pointer: Any,
        selector: RecordingSelector,
        sizes: BoundSizes | SymbolicSizes,
        in_value: Callable[[int], Term | None] = lambda address: None,
    ) -> Term:
        """The argument of each step for a pointer of the first step. Raises TypeError for an address in unknown memory.

        `in_value`: returns the argument for an address in a value, or None.
        """
        if isinstance(pointer, Temporary):
            return Term(0, pointer.offset, TEMPORARY)
        if isinstance(pointer, Deferred):
            return Term(size=pointer)
        if not isinstance(pointer, int):
            return self._after(self._group.values[0].index(pointer.value), pointer.distance)
        term = (self._in_constant(pointer, selector, sizes) or in_value(pointer)) if pointer else Term()
        if term is None:
            raise TypeError("a pointer to unknown memory")
        return term

    def in_value(self, first: Step, sizes: BoundSizes, pointer: int) -> Term | None:
        """The argument for an address in a value of the first step."""
        for slot, (value, concrete) in enumerate(zip(self._group.values[0], distinct_values(first), strict=True)):
            if concrete.source is None:
                start, room = sizes.room(value)
                if 0 <= pointer - start < room:
                    return self._after(slot, pointer - int(sizes.addresses[self._group.numbers[slot][0]]))
        return None

    def _after(self, slot: int, distance: Any) -> Term:
        """The argument `distance` bytes after the start of a value."""
        return Term(0, distance, VALUES + self._group.numbers[slot])

    def _in_constant(self, pointer: int, selector: RecordingSelector, sizes: BoundSizes | SymbolicSizes) -> Term | None:
        """The argument for an address in a constant.

        None for an address in several constants of the step whose addresses differ in another step. A file may store
        equal constants once, for example the scale and the shift of one normalization, but not of another.
        """
        matches = {
            (read.slot, read.how): (self._addresses(read, sizes), pointer - address(read.array))
            for read in selector.reads
            if 0 <= pointer - address(read.array) < read.room
        }
        if matches:
            known = [addresses + distance for addresses, distance in matches.values() if addresses is not None]
            alike = len(known) == len(matches) and all(np.array_equal(p, known[0]) for p in known)
            return Term(known[0]) if alike else None
        is_created = any(0 <= pointer - address(array) < array.nbytes for array in selector.created)
        return Term(pointer) if is_created else None

    def _addresses(self, read: Read, sizes: BoundSizes | SymbolicSizes) -> Array | None:
        """The addresses of the constants of all steps that correspond to `read`; None if their strides differ."""
        key, array = (read.slot, read.how), read.array
        if key in self._constants:
            return self._constants[key][0]
        values = [values[read.slot] for values in self._group.values]
        concrete = [sizes.value(value) for value in values]
        arrays = [read.of(value) for value in concrete]
        if any(a.strides != array.strides or a.dtype != array.dtype for a in arrays):
            return None
        addresses = np.array([address(a) for a in arrays], np.int64)
        if all(a.source is b.source for a, b in zip(values, concrete, strict=True)):  # else they depend on the shape
            self._constants[key] = addresses, arrays
        return addresses


def select(step: Step, selector: RecordingSelector, sizes: BoundSizes | SymbolicSizes) -> tuple[Step, list[Launch]]:
    """The concrete step for a symbolic step, and its launches."""
    concrete = sizes.step(step)
    selector.record(concrete)
    return concrete, TABLE.select(concrete)(concrete, selector)

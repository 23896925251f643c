"""Variables that grow: reserves memory for the rows that an inference appends, and reuses the last plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irload.core.tensor import Array, TensorType
from irload.plan.interpreter import InterpreterRun
from irload.plan.variables import GrownRows, Room, Variables
from irload.record import record

if TYPE_CHECKING:
    from irload.plan.traced.growth import Growth
    from irload.runtime.families import Variant

UNREAD = np.zeros(0)
"""Stands for the value of a variable that grows: the plan reads it in its memory."""


@record(eq=False)
class Successor:
    """The traced plan that has appended the last rows; it usually runs the next token, too.

    `known`: the values of the symbols that the dims of the variables determine, None for other symbols; `axis`: the
    index of the symbol of the growing axis; `compares`: whether types are compared with the file. `states`: for each
    variable that the plan reads its name, shape and dtype, None for variables that grow; `unset`: the variables that
    have no value.
    """

    variant: Variant
    compares: bool
    room: Room
    known: Sequence[int | None]
    axis: int
    states: Sequence[tuple[str, tuple[int, ...], np.dtype[Any]] | None]
    unset: Sequence[str]

    @staticmethod
    def of(
        variant: Variant, room: Room, variables: Variables, reads: Sequence[str], *, compares: bool
    ) -> Successor | None:
        """Return the successor for variables that grow in `room`; None if their shapes do not fit the pattern.

        `variables`: the values that the plan has read; `reads`: the names of all variables, in order.
        """
        growth, pattern = variant.planned.growth, variant.symbols.pattern
        held = [name for name in reads if name in room.index or name in variables.separate]
        first = len(pattern) - len(held)
        if growth is None or variant.remainder is not None or first < 0:
            return None
        axes = {pattern[g.input][g.axis] for g in growth.growing}
        if len(axes) != 1 or any(g.input < first or held[g.input - first] != g.name for g in growth.growing):
            return None
        (axis,) = axes
        known: list[int | None] = [None] * len(variant.symbols.values)
        for g, form in zip(growth.growing, room.forms, strict=True):
            dims = enumerate(zip(form.shape, pattern[g.input], strict=True))
            if axis >= 0 or not all(_fits(n, code, known) for k, (n, code) in dims if k != g.axis):
                return None
        arrays = {name: array for name, array in variables.separate.items() if name not in room.index}
        states = [(name, arrays[name].shape, arrays[name].dtype) if name in arrays else None for name in held]
        for state, codes in zip(states, pattern[first:], strict=True):
            if state is not None and not all(_fits(n, c, known) for n, c in zip(state[1], codes, strict=True)):
                return None
        return Successor(variant, compares, room, known, -1 - axis, states, [n for n in reads if n not in held])

    def held(self, variables: Variables) -> list[Array] | None:
        """Return the values of the variables, `UNREAD` if they grow; None if a shape or dtype has changed."""
        separate = variables.separate
        if any(name in separate for name in self.unset):
            return None
        arrays: list[Array] = []
        for state in self.states:
            array = UNREAD if state is None else separate.get(state[0])
            if array is None or (state is not None and (array.shape, array.dtype) != state[1:]):
                return None
            arrays.append(array)
        return arrays

    def values(self, given: Sequence[TensorType], length: int) -> tuple[int, ...] | None:
        """Return the values of the symbols for these input types and this length; None if they violate the pattern."""
        known = list(self.known)
        if known[self.axis] is not None:
            return None
        known[self.axis] = length
        for tensor, element, codes in zip(given, self.variant.elements, self.variant.symbols.pattern, strict=False):
            sizes = tensor.shape.static
            if tensor.element is not element or len(sizes) != len(codes):
                return None
            for n, code in zip(sizes, codes, strict=True):
                if not _fits(n, code, known):
                    return None
        values = tuple(n for n in known if n is not None)
        return values if len(values) == len(known) and self.variant.holds(values) else None


def _fits(size: int, code: int, known: list[int | None]) -> bool:
    """True if a dim matches the pattern. Sets the symbol if it is not known yet."""
    if code >= 0:
        return size == code
    before = known[-1 - code]
    if before is None:
        known[-1 - code] = size
    return before is None or before == size


def extended(growth: Growth, sizes: Sequence[int], arrays: Sequence[Array], run: InterpreterRun) -> GrownRows:
    """Return the variables, extended by the rows that this inference will write: in place if possible, else copies.

    Rows are appended in place only if no other inference has appended to the same rows. `sizes`: the values of all
    sizes of the plan; `arrays`: the inputs of the plan. Raises LimitExceeded.
    """
    forms, (length, more, size) = growth.forms(sizes), growth.rows(sizes)
    order = None if growth.order is None else _reordering(arrays[growth.order], size)
    held = run.variables.rows
    if held is not None and order is None and held.length == length:
        in_place = held.extended(forms, more)
        if in_place is not None:
            return in_place
    past = [run.variables[growing.name] for growing in growth.growing]
    if order is not None:
        from irload.ops.movement.gather import Gather

        axis = np.array(growth.batch)
        past = [Gather().compute(array, order, axis) for array in past]
    limits = run.limits
    rows = GrownRows.copied(forms, past, more, lambda nbytes: limits.peak_bytes is None or nbytes <= limits.peak_bytes)
    limits.require("peak_bytes", rows.room.nbytes(forms, rows.room.capacity), "the variables are too large")
    return rows


def _reordering(order: Array, size: int) -> Array | None:
    """Return the indices of a Gather, or None if they are 0, 1, 2, … over the entire axis."""
    return None if order.tolist() == list(range(size)) else order

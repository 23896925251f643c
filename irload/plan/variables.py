"""The variables of a request between inferences. Variables that grow have memory with room for more rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.strides import Strided
from irload.plan.memory.reserved import reserved_bytes
from irload.record import record
from irload.system.portable import COMMITS_LATE

LEAST_ROOM = 4096 if COMMITS_LATE else 64
"""Minimum number of rows for which memory of variables that grow is reserved, if the limits allow it."""


@record()
class GrowingForm:
    """A variable that grows along an axis. `shape` is the shape of one row, with length 1 along the axis."""

    name: str
    shape: tuple[int, ...]
    axis: int
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        """The bytes of one row."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in bytes, with the growing axis outermost. They do not depend on the number of rows."""
        order = (self.axis, *(k for k in range(len(self.shape)) if k != self.axis))
        return tuple(s * self.dtype.itemsize for s in Strided.dense(self.shape, order).strides)


class Room:
    """Memory for variables that grow, with the growing axis outermost. Rows are only appended."""

    def __init__(self, forms: Sequence[GrowingForm], capacity: int) -> None:
        self.forms = tuple(forms)
        self.capacity = capacity
        """Rows of each variable."""
        self.used = 0
        """Number of rows that inferences have written or reserved."""
        self.index = {form.name: k for k, form in enumerate(forms)}
        self._starts = np.cumsum([0, *(-(-form.row_bytes * capacity // 64) * 64 for form in forms)])
        self._memory = reserved_bytes(max(int(self._starts[-1]), 1))
        self._strides = [form.strides for form in forms]
        self.addresses: Array = self._memory.ctypes.data + self._starts[:-1]
        """The address of each variable."""

    @staticmethod
    def nbytes(forms: Sequence[GrowingForm], capacity: int) -> int:
        """Return the bytes of memory of this capacity."""
        return sum(form.row_bytes * capacity for form in forms)

    def array(self, index: int, length: int) -> Array:
        """Return a view of the first `length` rows of a variable."""
        form = self.forms[index]
        shape = (*form.shape[: form.axis], length, *form.shape[form.axis + 1 :])
        return np.ndarray(shape, form.dtype, self._memory, int(self._starts[index]), self._strides[index])


@record(frozen=False, eq=False)
class GrownRows:
    """The first `length` rows of the variables in a `Room`. These rows are never modified.

    `successor`: data for the next inference, set by the plan that has written the last rows.
    """

    room: Room
    length: int
    successor: object = None

    def extended(self, forms: Sequence[GrowingForm], more: int) -> GrownRows | None:
        """Return these rows and the next `more` rows, which the caller must write; None if there is no room."""
        room = self.room
        if room.forms != forms or room.used != self.length or self.length + more > room.capacity:
            return None
        room.used += more
        return GrownRows(room, room.used, self.successor)

    @staticmethod
    def copied(
        forms: Sequence[GrowingForm],
        arrays: Sequence[Array],
        more: int,
        allowed: Callable[[int], bool] = lambda nbytes: True,
    ) -> GrownRows:
        """Return copies of arrays in a new Room, followed by `more` rows, which the caller must write.

        The room has twice the needed rows, but at least `LEAST_ROOM`. If `allowed` is false for its bytes, or the
        system does not provide them, it has twice the needed rows, or else only the needed rows. Raises MemoryError.
        """
        length = arrays[0].shape[forms[0].axis]
        needed = length + more
        room = GrownRows._room(forms, needed, allowed)
        for k, array in enumerate(arrays):
            np.copyto(room.array(k, length), array)
        room.used = needed
        return GrownRows(room, needed)

    @staticmethod
    def _room(forms: Sequence[GrowingForm], needed: int, allowed: Callable[[int], bool]) -> Room:
        for capacity in (max(2 * needed, LEAST_ROOM), 2 * needed):
            if allowed(Room.nbytes(forms, capacity)):
                with suppress(MemoryError):
                    return Room(forms, capacity)
        return Room(forms, needed)


class Variables(MutableMapping[str, Array]):
    """The values of variables by name. Values of variables that grow are views of rows that are never modified."""

    def __init__(self, arrays: Mapping[str, Array] | None = None) -> None:
        self._arrays: dict[str, Array] = dict(arrays or {})
        self.rows: GrownRows | None = None
        """The values of the variables that grow; the other values are in a dict."""

    def __getitem__(self, name: str) -> Array:
        rows = self.rows
        if rows is not None and name in rows.room.index:
            return rows.room.array(rows.room.index[name], rows.length)
        return self._arrays[name]

    def __setitem__(self, name: str, value: Array) -> None:
        self._separate(name)
        self._arrays[name] = value

    def __delitem__(self, name: str) -> None:
        self._separate(name)
        del self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._arrays
        if self.rows is not None:
            yield from self.rows.room.index

    def __len__(self) -> int:
        return len(self._arrays) + (0 if self.rows is None else len(self.rows.room.index))

    def copy(self) -> Variables:
        """Return a copy that shares the arrays. Later assignments to one object do not change the other."""
        other = Variables(self._arrays)
        other.rows = self.rows
        return other

    def hold(self, rows: GrownRows) -> None:
        """Set the values of all variables that grow."""
        if self.rows is not None and self.rows.room.index.keys() != rows.room.index.keys():
            self._separate(*self.rows.room.index)
        for name in self._arrays.keys() & rows.room.index.keys():
            del self._arrays[name]
        self.rows = rows

    @property
    def separate(self) -> Mapping[str, Array]:
        """The values of the variables that do not grow."""
        return self._arrays

    def _separate(self, *names: str) -> None:
        """Turn variables that grow into ordinary ones, before one of `names` is set or deleted separately."""
        rows = self.rows
        if rows is not None and any(name in rows.room.index for name in names):
            self._arrays |= {name: rows.room.array(k, rows.length) for name, k in rows.room.index.items()}
            self.rows = None

"""Lists of integers with a meaning: Shape, Strides, coordinates and axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

from irload.core.shape import Shape as Sizes
from irload.openvino.errors import translated

__all__ = ["AxisSet", "AxisVector", "Coordinate", "CoordinateDiff", "Shape", "Strides"]


class _Integers:
    """A mutable list of integers; comparable with lists and tuples, not hashable."""

    __slots__ = ("_values",)
    __hash__ = None

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._values = [int(v) for v in values]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[int]:
        return iter(self._values)

    def __getitem__(self, index: Any) -> Any:
        selected = self._values[index]
        return type(self)(selected) if isinstance(selected, list) else selected

    def __setitem__(self, index: int, value: Any) -> None:
        self._values[index] = int(value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Integers | list | tuple):
            return self._values == list(other)
        return NotImplemented

    def __copy__(self) -> Self:
        return type(self)(self._values)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self._values),)

    def __str__(self) -> str:
        return ", ".join(map(str, self._values))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: ({self})>"


class Shape(_Integers):
    """The static sizes of a tensor: from a sequence, a Shape or its text `[1,3,224,224]`."""

    def __init__(self, axis_lengths: Any = ()) -> None:
        if isinstance(axis_lengths, str):
            with translated():
                axis_lengths = Sizes.parse(axis_lengths).static
        super().__init__(axis_lengths)
        if any(v < 0 for v in self._values):
            raise TypeError(f"a Shape has no negative sizes, found {self}")

    def to_string(self) -> str:
        """The text `[1,3]`."""
        return str(self)

    def __str__(self) -> str:
        return f"[{','.join(map(str, self._values))}]"

    def __repr__(self) -> str:
        return f"<Shape: {self}>"


class Strides(_Integers):
    """The distances of consecutive elements per axis, in bytes for tensors."""


class Coordinate(_Integers):
    """The position of an element."""


class CoordinateDiff(_Integers):
    """Differences of positions, such as paddings."""


class AxisVector(_Integers):
    """A list of axes."""

    def __repr__(self) -> str:
        return f"<AxisVector {{{self}}}>"


class AxisSet(_Integers):
    """A set of axes, iterated in ascending order."""

    def __init__(self, axes: Iterable[Any] = ()) -> None:
        super().__init__(sorted(set(axes)))

    def __repr__(self) -> str:
        return f"<AxisSet {{{self}}}>"

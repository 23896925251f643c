"""Output types inferred at run time, cached by the shapes of the inputs and by the values that inference reads."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Self

from irload.core.element import dynamic, element_of_dtype
from irload.core.shape import shape_of
from irload.core.tensor import Array, TensorType
from irload.plan.wide import rounded_array
from irload.record import record

KEPT = 16
"""Maximum number of combinations of input shapes, and of values for each, whose types are cached."""
LARGEST = 4096
"""Maximum number of bytes of the values on which cached types depend."""


class UnreadType(TensorType):  # pyrefly: ignore[bad-class-definition] - not a dataclass
    """The type of an array that is stored as another type, whose value is converted when it is first read."""

    __slots__ = ("_array", "is_read")

    is_read: bool

    @classmethod
    def of_stored(cls, array: Array, stored: TensorType) -> Self:
        """Return the type of an array that was inferred as the type `stored`."""
        element = element_of_dtype(array.dtype) if stored.element is dynamic else stored.element
        unread = cls(element, shape_of(array.shape))
        object.__setattr__(unread, "_array", array)
        object.__setattr__(unread, "is_read", False)
        object.__delattr__(unread, "value")  # reading a missing slot calls __getattr__
        return unread

    def __getattr__(self, name: str) -> Any:
        if name != "value":
            raise AttributeError(name)
        value = rounded_array(self._array, self)
        object.__setattr__(self, "is_read", True)
        object.__setattr__(self, "value", value)
        return value

    def without_value(self) -> TensorType:
        """The same type without its value."""
        return TensorType(self.element, self.shape)


@record()
class Outputs:
    """The output types of a node, and the sum of their bytes."""

    types: tuple[TensorType, ...]
    nbytes: int


class InferredTypes:
    """The output types of a node for the inputs of earlier runs. Thread-safe.

    `infer` must be a function of the types of the inputs: of shapes, elements, and the values that it reads.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[tuple[int, ...], dict[Hashable, Outputs]]] = {}
        """By dtypes and shapes: the inputs whose values are read, and the outputs by these values."""

    def find(self, form: Hashable, arrays: Sequence[Array]) -> Outputs | None:
        """Return the outputs for arrays of this form, or None."""
        known = self._known.get(form)
        return None if known is None else known[1].get(_values(arrays, known[0]))

    def keep(self, form: Hashable, arrays: Sequence[Array], given: Sequence[UnreadType], outputs: Outputs) -> None:
        """Store the outputs inferred from these types of the arrays, unless they depend on large values or on text."""
        read = tuple(k for k, tensor in enumerate(given) if tensor.is_read)
        if any(arrays[k].dtype.hasobject for k in read) or sum(arrays[k].nbytes for k in read) > LARGEST:
            return
        known = self._known.get(form)
        if known is None or not set(known[0]).issuperset(read):
            if len(self._known) >= KEPT:
                self._known.clear()
            known = self._known[form] = tuple({*read, *(() if known is None else known[0])}), {}
        if len(known[1]) >= KEPT:
            known[1].clear()
        known[1][_values(arrays, known[0])] = outputs


def form_of(arrays: Sequence[Array]) -> tuple[Hashable, ...]:
    """Return the dtypes and shapes of arrays."""
    return tuple([(array.dtype, array.shape) for array in arrays])  # a list is faster than a generator


def _values(arrays: Sequence[Array], numbers: Sequence[int]) -> Hashable:
    return tuple([arrays[k].tobytes() for k in numbers])

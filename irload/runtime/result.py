"""The outputs of one inference."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from irload.core.shape import shape_of
from irload.core.tensor import Array
from irload.graph import Node, Port, position, positions
from irload.wording import counted, printable

__all__ = ["Result", "owned"]


class Result(Mapping[Any, Array]):
    """The outputs of one inference, in the order of the model's Results.

    Index it by position, by any name of an output, or by a Port; iterating gives the Ports, `values()` the arrays.
    Raises IndexError for a position out of range, KeyError for an unknown name or Port.
    """

    def __init__(self, ports: Sequence[Port], arrays: Sequence[Array]) -> None:
        self._ports = ports
        self._arrays = arrays
        self._positions: dict[Node | str, int] | None = None

    def __getitem__(self, key: int | str | Port) -> Array:
        if isinstance(key, int):
            count = len(self._arrays)
            if not -count <= key < count:
                raise IndexError(f"the model has {counted(count, 'output')}, found index {key}")
            return self._arrays[key]
        if self._positions is None:
            self._positions = positions(self._ports)
        index = position(self._positions, key)
        if index is not None:
            return self._arrays[index]
        names = ", ".join(f"'{p.any_name}'" for p in self._ports)
        raise KeyError(f"no output {key!r}; the model has {names}")

    def __repr__(self) -> str:
        arrays = zip(self._ports, self._arrays, strict=True)
        shown = [f"{p.any_name}: {p.element_type}{shape_of(a.shape)}" for p, a in arrays]
        return printable(f"<Result {', '.join(shown)}>")

    def __iter__(self) -> Iterator[Port]:
        return iter(self._ports)

    def __len__(self) -> int:
        return len(self._ports)

    def to_dict(self) -> dict[str, Array]:
        """Return the arrays by output name."""
        return {p.any_name: a for p, a in zip(self._ports, self._arrays, strict=True)}


def owned(result: Array, used_ids: Collection[int]) -> Array:
    """Return a result that shares no memory. Views, constants, and arrays with an id in `used_ids` are copied."""
    unshared = result.flags.owndata and result.flags.writeable and id(result) not in used_ids
    return result if unshared else result.copy()

"""OVDict: the outputs of one inference by port, index or name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from irload.core.tensor import Array
from irload.openvino.ports import ConstOutput

__all__ = ["OVDict"]


class OVDict(Mapping[Any, Array]):
    """The outputs of one inference. Keys are ports; items are looked up by port, index or name."""

    __slots__ = ("__weakref__", "_arrays", "_names")

    def __init__(self, arrays: dict[ConstOutput, Array]) -> None:
        self._arrays = arrays
        self._names: tuple[set[str], ...] | None = None

    def __getitem__(self, key: Any) -> Array:
        if isinstance(key, ConstOutput):
            return self._arrays[key]
        if isinstance(key, str):
            for port, names in zip(self._arrays, self.names(), strict=True):
                if key in names:
                    return self._arrays[port]
            raise KeyError(key)
        if isinstance(key, int):
            try:
                return [*self._arrays.values()][key]
            except IndexError:
                raise KeyError(key) from None
        raise TypeError(f"Unknown key type: {type(key)}")

    def __iter__(self) -> Iterator[ConstOutput]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def names(self) -> tuple[set[str], ...]:
        """The names of each output."""
        if self._names is None:
            self._names = tuple(port.names for port in self._arrays)
        return self._names

    def to_dict(self) -> dict[ConstOutput, Array]:
        """The dict of arrays by port."""
        return self._arrays

    def to_tuple(self) -> tuple[Array, ...]:
        """The arrays in order."""
        return tuple(self._arrays.values())

    def __repr__(self) -> str:
        return repr(self._arrays)

"""RTMap and OVAny: the metadata of models, nodes and ports."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, cast

__all__ = ["OVAny", "RTMap", "plain"]


class OVAny:
    """A value of any type, as properties and metadata have them."""

    __slots__ = ("value",)
    __hash__ = None

    def __init__(self, value: Any) -> None:
        self.value = plain(value)

    def get(self) -> Any:
        """The value, without conversion."""
        return self.value

    def set(self, value: Any) -> None:
        """Replace the value."""
        self.value = plain(value)

    def astype(self, kind: Any) -> Any:
        """The value as `bool`, `int`, `float`, `str` or `dict`. Text such as `YES` and `false` is a bool."""
        if kind is bool and isinstance(self.value, str):
            return self.value.lower() in ("true", "yes", "1", "on")
        if kind is dict:
            return dict(self.value)
        return kind(self.value)

    def aslist(self, kind: Any = None) -> list[Any]:
        """The value as a list; an empty text or map is an empty list."""
        if isinstance(self.value, str):
            items: list[Any] = self.value.split()  # in files, blanks separate the items of a list
        elif isinstance(self.value, list | tuple):
            items = [*self.value]
        else:
            items = [self.value] if self.value else []
        return items if kind is None else [kind(item) for item in items]

    def __getitem__(self, key: Any) -> Any:
        return self.value[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.value[key] = value

    def __len__(self) -> int:
        return len(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == plain(other))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


class RTMap(MutableMapping[str, Any]):
    """A dict of metadata: keys are texts, items are OVAny."""

    def __init__(self, items: MutableMapping[str, Any] | None = None) -> None:
        self._items: MutableMapping[str, Any] = {} if items is None else items

    def __getitem__(self, key: str) -> Any:
        if key not in self._items:
            raise KeyError(key)
        value = self._items[key]
        return _boxed(cast("dict[str, Any]", value)) if isinstance(value, dict) else _Item(self._items, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._items[key] = plain(value)

    def __delitem__(self, key: str) -> None:
        del self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __bool__(self) -> bool:
        return bool(self._items)

    def __repr__(self) -> str:
        return "<RTMap>"


def _boxed(items: dict[str, Any]) -> dict[str, Any]:
    """A copy of a map of metadata, with its values as OVAny."""
    return {k: _boxed(cast("dict[str, Any]", v)) if isinstance(v, dict) else OVAny(v) for k, v in items.items()}


class _Item(OVAny):
    """An item of a map. `set` also replaces the item in the map."""

    __slots__ = ("_key", "_map")

    def __init__(self, entries: MutableMapping[str, Any], key: str) -> None:
        super().__init__(entries[key])
        self._map, self._key = entries, key

    def set(self, value: Any) -> None:
        """Replace the value here and in the map."""
        super().set(value)
        self._map[self._key] = self.value


def plain(value: Any) -> Any:
    """The value inside OVAny and RTMap."""
    if isinstance(value, OVAny):
        return value.value
    return dict(value) if isinstance(value, RTMap) else value

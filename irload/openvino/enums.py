"""The base of enumerations: members convert to int and have `name` and `value`, as OpenVINO's do."""

from __future__ import annotations

from enum import Enum, EnumMeta
from typing import Any

__all__ = ["Choice"]


class _Named(EnumMeta):
    """`__entries` of pybind11's enumerations: pairs of a member and its documentation, by name."""

    def __getattr__(cls, name: str) -> Any:
        if name == "__entries":
            members = cls.__members__  # pyrefly: ignore[bad-argument-type]
            return {key: (member, None) for key, member in members.items()}
        raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")


class Choice(Enum, metaclass=_Named):
    """An enumeration whose members convert to int."""

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    @classmethod
    def parse(cls, value: object) -> Choice:
        """The member, from itself, its name, its number or its text. Raises ValueError."""
        if isinstance(value, cls):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return cls(value)
        name = str(value).rpartition(".")[2].upper()
        if name not in cls.__members__:
            raise ValueError(f"expected one of {', '.join(cls.__members__)}, found {value!r}")
        return cls[name]

"""The base of enumerations: members convert to int and have `name` and `value`, as the runtime's do."""

from __future__ import annotations

from enum import Enum

__all__ = ["Choice"]


class Choice(Enum):
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

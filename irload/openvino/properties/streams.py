"""Streams: inferences that run at the same time."""

from __future__ import annotations

from typing import ClassVar

from irload.openvino.properties.names import Property


class Num:
    """A number of streams; `Num.AUTO` is one per processor."""

    AUTO: ClassVar[Num]
    NUMA: ClassVar[Num]

    def __init__(self, value: int = -1) -> None:
        self._value = int(value)

    def to_integer(self) -> int:
        """The number of streams; −1 for AUTO."""
        return self._value

    def __int__(self) -> int:
        return self._value

    def __index__(self) -> int:
        return self._value

    def __eq__(self, other: object) -> bool:
        return self._value == int(other) if isinstance(other, Num | int) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return str(self._value)


Num.AUTO, Num.NUMA = Num(-1), Num(-2)

num = Property("NUM_STREAMS")

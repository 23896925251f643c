"""DiscreteTypeInfo: the type and opset of an operation."""

from __future__ import annotations

from functools import total_ordering
from typing import Any

from irload.core.op import Op
from irload.openvino.attributes import TYPE_NAMES

__all__ = ["DiscreteTypeInfo", "type_info"]


@total_ordering
class DiscreteTypeInfo:
    """The type and opset of an operation."""

    __slots__ = ("name", "parent", "version_id")
    __hash__ = None

    def __init__(self, name: str, version_id: str, parent: DiscreteTypeInfo | None = None) -> None:
        self.name = name
        self.version_id = version_id
        self.parent = parent

    def hash(self) -> int:
        """A hash of type and opset."""
        return hash((self.name, self.version_id))

    def _key(self) -> tuple[str, str]:
        return self.version_id, self.name

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, DiscreteTypeInfo) else NotImplemented

    def __lt__(self, other: Any) -> bool:
        return self._key() < other._key()

    def __repr__(self) -> str:
        parent = f" Parent({self.parent.name} {self.parent.version_id})" if self.parent else ""
        return f"<DiscreteTypeInfo: {self.name} {self.version_id}{parent}>"


def type_info(op: Op) -> DiscreteTypeInfo:
    """Type and opset of an operation."""
    return DiscreteTypeInfo(TYPE_NAMES.get(op.type, op.type), op.opset, DiscreteTypeInfo("Op", "util"))

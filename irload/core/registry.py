"""The table of operations: (namespace, type) → classes by version. Class statements fill it; nothing else does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irload.core.op import Op

table: dict[tuple[str, str], list[type[Op]]] = {}
"""The variants of each type, oldest first. Types are in lower case."""


def register(cls: type[Op]) -> None:
    """Enter a class. Two classes for one (namespace, type, since) are a programming error."""
    versions = table.setdefault((cls.namespace, cls.type.lower()), [])
    twin = next((v for v in versions if v.since == cls.since), None)
    if twin is not None and twin.__qualname__ != cls.__qualname__:
        raise TypeError(f"{cls.__qualname__} and {twin.__qualname__} both register {cls.type} {cls.opset}")
    if twin is not None:  # the same module executed again, as notebooks do
        versions.remove(twin)
    versions.append(cls)
    versions.sort(key=lambda v: v.since)

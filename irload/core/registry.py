"""The table of operations: (namespace, type) → classes by version. Only the class statements of operations fill it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irload.core.op import Op

table: dict[tuple[str, str], list[type[Op]]] = {}
"""The variants of each type, oldest first. Types are in lower case."""


def register(cls: type[Op]) -> None:
    """Register a class. Raises TypeError if another class has the same namespace, type and `since`."""
    versions = table.setdefault((cls.namespace, cls.type.lower()), [])
    twin = next((v for v in versions if v.since == cls.since), None)
    if twin is not None and twin.__qualname__ != cls.__qualname__:
        raise TypeError(f"{cls.__qualname__} and {twin.__qualname__} both register {cls.type} {cls.opset}")
    if twin is not None:  # the same module executed again, as in notebooks
        versions.remove(twin)
    versions.append(cls)
    versions.sort(key=lambda v: v.since)

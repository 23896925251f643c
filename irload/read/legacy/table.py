"""The table of functions that rewrite legacy layers, by type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irload.read.legacy.layer import LegacyLayer, Wire

Rewrite = Callable[[LegacyLayer], Wire | Sequence[Wire]]
"""Adds operations to `layer.operations`, and returns the outputs: outputs of operations, or inputs of the layer."""

_table: dict[str, Rewrite] = {}


def rewrites(*types: str) -> Callable[[Rewrite], Rewrite]:
    """Register a function for legacy types, ignoring case."""

    def register(function: Rewrite) -> Rewrite:
        for type in types:
            if _table.setdefault(type.lower(), function) is not function:
                raise ValueError(f"{type} is registered twice")
        return function

    return register


def rewrite_of(type: str) -> Rewrite | None:
    """The function for a type, None if the type is unknown."""
    return _table.get(type.lower())

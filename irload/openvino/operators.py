"""Arithmetic and comparisons of nodes, which create operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irload.openvino import adapters, authoring

__all__ = ["Operators"]


def _binary(type: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        pair = [authoring.as_input(other), authoring.as_input(self)]
        return adapters.adapter(authoring.create(type, "opset13", pair if swapped else pair[::-1]))

    return operator


def _unary(type: str) -> Callable[[Any], Any]:
    def operator(self: Any) -> Any:
        return adapters.adapter(authoring.create(type, "opset13", [authoring.as_input(self)]))

    return operator


class Operators:
    """The operators of nodes; `==` compares identity."""

    __array_ufunc__ = None  # NumPy arrays defer to the operators of the node

    __add__, __radd__ = _binary("Add"), _binary("Add", swapped=True)
    __sub__, __rsub__ = _binary("Subtract"), _binary("Subtract", swapped=True)
    __mul__, __rmul__ = _binary("Multiply"), _binary("Multiply", swapped=True)
    __truediv__, __rtruediv__ = _binary("Divide"), _binary("Divide", swapped=True)
    __pow__, __rpow__ = _binary("Power"), _binary("Power", swapped=True)
    __lt__, __le__ = _binary("Less"), _binary("LessEqual")
    __gt__, __ge__ = _binary("Greater"), _binary("GreaterEqual")
    __neg__, __abs__ = _unary("Negative"), _unary("Abs")

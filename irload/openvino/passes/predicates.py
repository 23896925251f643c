"""Predicates on outputs, by which patterns select nodes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irload.openvino.dimensions import Dimension, Symbol
from irload.openvino.errors import OpenVINOError
from irload.openvino.ports import Output
from irload.openvino.types import Type

__all__ = [
    "Predicate",
    "attrs_match",
    "consumers_count",
    "has_static_dim",
    "has_static_dims",
    "has_static_rank",
    "has_static_shape",
    "rank_equals",
    "rank_more_than",
    "shape_matches",
    "type_matches",
    "type_matches_any",
]

Symbols = dict[str, Any]
"""The sizes or symbols of dims that `shape_matches` names, and lists of them."""


class Predicate:
    """A condition on an output: a function of the output, or of the symbols of the match and the output."""

    def __init__(self, predicate: Callable[..., Any] | None = None) -> None:
        self._function = predicate
        self._symbolic = predicate is not None and len(inspect.signature(predicate).parameters) == 2

    @staticmethod
    def of(given: Predicate | Callable[..., Any] | None) -> Predicate:
        """A predicate of a function; without one, always true."""
        return given if isinstance(given, Predicate) else Predicate(given)

    def __call__(self, output: Output, symbols: Symbols | None = None) -> bool:
        if self._function is None:
            return True
        bindings = {} if symbols is None else symbols
        return bool(self._function(bindings, output) if self._symbolic else self._function(output))

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate(lambda symbols, output: self(output, symbols) and other(output, symbols))

    def __or__(self, other: Predicate) -> Predicate:
        return Predicate(lambda symbols, output: self(output, symbols) or other(output, symbols))


def consumers_count(count: int) -> Predicate:
    """The output feeds this number of inputs."""
    return Predicate(lambda output: len(output.target_inputs) == count)


def has_static_dim(axis: int) -> Predicate:
    """The dim of an axis is static."""
    return has_static_dims([axis])


def has_static_dims(axes: Sequence[int]) -> Predicate:
    """The dims of these axes are static."""

    def test(output: Output) -> bool:
        shape = output.partial_shape
        if shape.rank.is_dynamic:
            return False
        rank = len(shape)
        return all(-rank <= axis < rank and shape[axis].is_static for axis in axes)

    return Predicate(test)


def has_static_shape() -> Predicate:
    """The shape is static."""
    return Predicate(lambda output: output.partial_shape.is_static)


def has_static_rank() -> Predicate:
    """The rank is known."""
    return Predicate(lambda output: output.partial_shape.rank.is_static)


def rank_equals(rank: Any) -> Predicate:
    """The rank is this number or Dimension."""
    return Predicate(lambda output: output.partial_shape.rank == rank)


def rank_more_than(rank: Any) -> Predicate:
    """The rank is greater than this number or Dimension."""
    least = int(rank)
    return Predicate(lambda output: output.partial_shape.rank.is_static and len(output.partial_shape) > least)


def type_matches(type: Type) -> Predicate:
    """The element type is this one."""
    return Predicate(lambda output: output.element_type == type)


def type_matches_any(types: Sequence[Type]) -> Predicate:
    """The element type is one of these."""
    return Predicate(lambda output: output.element_type in types)


def attrs_match(attributes: Mapping[str, Any]) -> Predicate:
    """The attributes of the node have these values."""

    def test(output: Output) -> bool:
        known = output.node.get_attributes()
        return all(name in known and _same(known[name], value) for name, value in attributes.items())

    return Predicate(test)


def _same(known: Any, value: Any) -> bool:
    return list(known) == list(value) if isinstance(value, list | tuple) else bool(known == value)


def shape_matches(pattern: str) -> Predicate:
    """The shape is as in a text such as `[Batch,3,?,Size]`: numbers, `?`, names, and `...` for any number of dims.

    Names are symbols of the match: of static dims, or of dims with a Symbol. A name that occurs twice has one value;
    `Name...` is a list.
    """
    text = pattern.replace(" ", "").removeprefix("[").removesuffix("]")
    items = text.split(",") if text else []
    groups = [k for k, item in enumerate(items) if item.endswith("...")]
    if len(groups) > 1:
        raise OpenVINOError(f"Only one ellipsis is allowed for symbolic predicate notation, found {pattern}")

    def test(symbols: Symbols, output: Output) -> bool:
        shape = output.partial_shape
        if shape.rank.is_dynamic:
            return False
        dims = [*shape]
        wanted = items
        for k in groups:
            many = len(dims) - (len(items) - 1)
            if many < 0:
                return False
            name, group = items[k].removesuffix("..."), dims[k : k + many]
            if name and not _agrees(name, [_value(d) for d in group], symbols):
                return False
            dims, wanted = [*dims[:k], *dims[k + many :]], [*items[:k], *items[k + 1 :]]
        return len(dims) == len(wanted) and all(_fits(i, d, symbols) for i, d in zip(wanted, dims, strict=True))

    return Predicate(test)


def _fits(item: str, dim: Dimension, symbols: Symbols) -> bool:
    if item == "?":
        return True
    if item.lstrip("-").isdigit():
        return dim.is_static and dim.get_length() == int(item)
    return _agrees(item, _value(dim), symbols)


def _value(dim: Dimension) -> int | Symbol | None:
    """The size of a static dim, the symbol of another one, None without a symbol."""
    return dim.get_length() if dim.is_static else dim.get_symbol()


def _agrees(name: str, value: Any, symbols: Symbols) -> bool:
    """True if the value is known and equals the value that the name has."""
    if value is None or (isinstance(value, list) and None in value):
        return False
    return bool(symbols.setdefault(name, value) == value)

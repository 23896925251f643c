"""Factories of operations by opset: functions with OpenVINO's signatures, created from the registry."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from irload import graph
from irload.core.op import Op
from irload.openvino import authoring, special
from irload.openvino.adapters import adapter
from irload.openvino.attributes import TYPE_NAMES, XML_NAMES
from irload.openvino.errors import UserInputError, raising
from irload.openvino.node import Node
from irload.openvino.signatures import SIGNATURES
from irload.openvino.types import Type, element_of
from irload.ops.index import MODULES
from irload.ops.registry import registered, resolve

__all__ = ["factory", "names", "snake"]

LATEST = 17
_OF_THEIR_OPSET = frozenset({"range"})
"""Functions that also in later opsets create the operation of the opset that introduces the function."""


@dataclass(frozen=True, slots=True)
class Like:
    """The default of an input if a later input is given: the number `value`, in the element type of input `input`."""

    value: int
    input: str


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """One parameter of a factory. `kind`: "input", "inputs" (a list), "attribute" or "attributes" (a dict)."""

    name: str
    kind: str
    attribute: str = ""
    default: Any = Parameter.empty

    @property
    def parameter(self) -> Parameter:
        """The parameter of the function."""
        default = None if isinstance(self.default, Like | tuple) else self.default
        return Parameter(self.name, Parameter.POSITIONAL_OR_KEYWORD, default=default)

    @property
    def may_end(self) -> bool:
        """True if this input may be omitted together with all later inputs."""
        return self.kind == "input" and (self.default is None or isinstance(self.default, Like))


@dataclass(frozen=True, slots=True, eq=False)
class FactoryRow:
    """One line of the table: the opset that introduces the function, its type, its arguments, the order of inputs."""

    opset: int
    name: str
    type: str
    arguments: Sequence[Argument]
    order: Sequence[str]


def _argument(token: str) -> Argument:
    if token.startswith(".**"):
        name, _, default = token[3:].partition("=")
        return Argument(name, "attributes", "", None if default else Parameter.empty)
    if token.startswith("."):
        name, _, default = token[1:].partition("=")
        name, _, attribute = name.partition(":")
        return Argument(name, "attribute", attribute or name, literal_eval(default) if default else Parameter.empty)
    if token.startswith("*"):
        return Argument(token[1:], "inputs")
    name, optional, constant = token.partition("?")
    if not optional:
        return Argument(name, "input")
    if not constant:
        return Argument(name, "input", "", None)
    value, _, element = constant.partition(":")
    if element.startswith("="):
        return Argument(name, "input", "", Like(int(value), element[1:]))
    return Argument(name, "input", "", (literal_eval(value), element))


@cache
def _rows() -> dict[str, list[FactoryRow]]:
    """The rows of the table by function, in order of opsets."""
    types = {snake(TYPE_NAMES.get(type, type)): type for types in MODULES.values() for type in types.split()}
    rows: dict[str, list[FactoryRow]] = {}
    for line in re.sub(r"\\\n\s*", "", SIGNATURES).strip().splitlines():
        head, _, order = line.partition(" > ")
        number, names, *tokens = head.split()
        arguments = tuple(map(_argument, tokens))
        for item in names.split(","):
            name, _, kind = item.partition("=")
            row = FactoryRow(
                int(number), name, XML_NAMES.get(kind, kind) or types[name], arguments, tuple(order.split())
            )
            rows.setdefault(name, []).append(row)
    return rows


@cache
def _registered() -> dict[str, type[Op]]:
    """The operations by the names of their factories: `experimental_detectron_roi_feature_extractor`."""
    return {snake(TYPE_NAMES.get(cls.type, cls.type)): cls for cls in registered() if cls.namespace == "opset"}


def snake(type: str) -> str:
    """The name of the factory of a type: `experimental_detectron_roi_feature_extractor`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type).lower()


def names(number: int) -> Iterator[str]:
    """The names of the factories of an opset."""
    special_names = {name for name in special.names() if special.function(number, name) is not None}
    listed = {name for name, rows in _rows().items() if rows[0].opset <= number}
    yield from special_names | listed | {name for name, cls in _registered().items() if cls.since <= number}


@cache
def factory(number: int, name: str) -> Callable[..., Any] | None:
    """The factory of an opset by name, None for an unknown name."""
    function = special.function(number, name)
    if function is not None:
        return function
    rows = [row for row in _rows().get(name, ()) if row.opset <= number]
    if rows:
        return _function(rows[-1], rows[-1].opset if name in _OF_THEIR_OPSET else number)
    cls = _registered().get(name)
    if cls is None or cls.since > number:
        return None
    return _function(_row_of(cls), number)


def _row_of(cls: type[Op]) -> FactoryRow:
    """The row of an operation that the table does not list: its ports, then its attributes."""
    ports = cls.signature
    required = [Argument(p, "input") for p in ports.required]
    optional = [Argument(p, "input", "", None) for p in ports.optional]
    lists = [Argument(ports.variadic, "inputs")] if ports.variadic else []
    attributes = [
        Argument(a.name, "attribute", a.xml_name, Parameter.empty if a.required else None)
        for a in cls.declared.values()
        if not a.supplied
    ]
    needed = [a for a in attributes if a.default is Parameter.empty]
    return FactoryRow(
        cls.since,
        snake(cls.type),
        cls.type,
        [*required, *lists, *needed, *optional, *(a for a in attributes if a not in needed)],
        (),
    )


def _function(row: FactoryRow, number: int) -> Callable[..., Any]:
    seen_default = False
    parameters: list[Parameter] = []
    for argument in row.arguments:
        parameter = argument.parameter
        seen_default |= parameter.default is not Parameter.empty
        if seen_default and parameter.default is Parameter.empty:
            parameter = parameter.replace(default=None)
        parameters.append(parameter)
    named = Parameter("name", Parameter.POSITIONAL_OR_KEYWORD, default=None)
    has_name = any(a.name == "name" for a in row.arguments)
    signature = Signature(parameters if has_name else [*parameters, named])
    cls, _ = resolve(row.type, f"opset{number}")

    @raising
    def create(*given: Any, **keywords: Any) -> Node:
        bound = signature.bind(*given, **keywords)
        bound.apply_defaults()
        values = bound.arguments
        attributes: dict[str, Any] = {}
        for a in row.arguments:
            if a.kind == "attribute" and values[a.name] is not None:
                attributes[a.attribute] = values[a.name]
            elif a.kind == "attributes":
                attributes |= values[a.name] or {}
        name: str = values.get("name") or ""
        node = authoring.create(row.type, f"opset{number}", _inputs(row, values, name), attributes)
        if name:
            node.name = name
        return adapter(node)

    create.__name__ = create.__qualname__ = row.name
    create.__signature__ = signature  # pyrefly: ignore[missing-attribute]
    create.__doc__ = cls.__doc__
    return create


def _inputs(row: FactoryRow, values: dict[str, Any], name: str) -> list[graph.Output]:
    """Return the inputs in the order of the operation, without missing inputs at the end. `name`: of the node."""
    arguments = [a for a in row.arguments if a.kind.startswith("input")]
    if row.order:
        arguments.sort(key=lambda a: row.order.index(a.name))
    if row.type.startswith("I420to") and sum(values[a.name] is not None for a in arguments) == 2:
        raise UserInputError(f"Operation {row.type} must have one (single plane) or three (separate planes) inputs.")
    while arguments and arguments[-1].may_end and values[arguments[-1].name] is None:
        arguments.pop()
    given: list[graph.Output] = []
    for argument in arguments:
        value = values[argument.name]
        if argument.kind == "inputs":
            given += (authoring.as_input(item, name) for item in value)
        elif value is not None:
            given.append(authoring.as_input(value, name))
        elif isinstance(argument.default, Like):
            source = given[[a.name for a in arguments].index(argument.default.input)]
            constant = authoring.as_input(np.int32(argument.default.value))
            given.append(authoring.create("ConvertLike", "opset1", [constant, source]).outputs[0])
        elif isinstance(argument.default, tuple):
            given.append(_default(*argument.default))
        else:
            raise TypeError(f"{row.name} requires input {argument.name} if a later one is given")
    return given


def _default(value: Any, element: str) -> graph.Output:
    kind = element_of(getattr(Type, element))
    return authoring.constant(np.array(value, kind.dtype), kind).outputs[0]

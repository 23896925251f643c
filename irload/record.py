"""Slotted dataclasses that are cheap to define: their methods are shared instead of generated.

Defining a class with `@dataclass(slots=True)` takes about 0.5 ms, because `dataclasses` compiles source code for each,
and a process that runs a model defines more than a hundred. attrs takes as long. tests/test_record.py checks this rule:

- In modules that a run imports (`RUN_PATH` there: core, graph, ops, plan, read, runtime, …) a class is a `@record`,
  except where a process creates thousands of instances, since initializing a record takes longer.
- Everywhere else it is a `@dataclass`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeVar, dataclass_transform

import irload.sources  # noqa: F401 - stamps the files before other imports
from irload.wording import near_names, suggestion

R = TypeVar("R")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, frozen: bool = True, eq: bool = True, kw_only: bool = False) -> Callable[[type[R]], type[R]]:
    """Like `dataclass(slots=True)`, frozen by default. Raises TypeError for arguments that do not match the fields."""

    def make(cls: type[R]) -> type[R]:
        methods: dict[str, Any] = {"__repr__": _repr}
        if eq:
            methods |= {"__eq__": _equal, "__hash__": _hash if frozen else None}
        if frozen:
            methods |= {
                "__setattr__": _refuse,
                "__delattr__": _refuse,
                "__getstate__": _values,
                "__setstate__": _restore,
            }
        for name, method in methods.items():
            if vars(cls).get(name) is None:  # a class that defines __eq__ has None as __hash__
                setattr(cls, name, method)
        slotted: Any = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
        slotted.__init__ = _initializer(slotted)
        return slotted

    return make


def _initializer(cls: Any) -> Callable[..., None]:
    """Return the `__init__` of a slotted dataclass: positional and keyword arguments, defaults, `__post_init__`."""
    declared = {f.name: f for f in fields(cls)}
    names = (*cls.__match_args__, *(name for name in declared if name not in cls.__match_args__))
    put = [getattr(cls, name).__set__ for name in names]
    required = {name for name, f in declared.items() if f.default is MISSING and f.default_factory is MISSING}
    factories = {name: f.default_factory for name, f in declared.items() if f.default_factory is not MISSING}
    defaults = {name: f.default for name, f in declared.items() if f.default is not MISSING}
    positional = len(cls.__match_args__)
    finish = getattr(cls, "__post_init__", None)

    def refuse(values: Sequence[Any], named: Mapping[str, Any]) -> NoReturn:
        for name in sorted(named.keys() - declared.keys()):
            hint = suggestion(near_names(name, names)) or f"; the fields are {', '.join(names)}"
            raise TypeError(f"{cls.__name__} has no field '{name}'{hint}")
        given = names[: len(values)]
        wrong = named.keys() & set(given) or required - named.keys() - set(given)
        raise TypeError(f"{cls.__name__}({', '.join(names)}): {', '.join(wrong) or len(values)} given incorrectly")

    def complete(values: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        arguments = list(values)
        left = len(named)
        for name in names[len(values) :]:
            if name in named:
                arguments.append(named[name])
                left -= 1
            elif name in defaults:
                arguments.append(defaults[name])
            elif name in factories:
                arguments.append(factories[name]())
            else:
                refuse(values, named)
        if left or len(values) > positional:
            refuse(values, named)
        return arguments

    whole_count = positional if len(names) == positional else -1

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        whole = not named and len(values) == whole_count
        for assign, value in zip(put, values if whole else complete(values, named), strict=True):
            assign(self, value)
        if finish is not None:
            finish(self)

    return __init__


@cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


@cache
def _getter(cls: type) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the fields of an instance in a third of the time of `getattr`."""
    names = _names(cls)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _values(self: Any) -> tuple[Any, ...]:
    return _getter(type(self))(self)


@recursive_repr()
def _repr(self: Any) -> str:
    return (
        f"{type(self).__qualname__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in fields(self) if f.repr)})"
    )


def _equal(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _restore(self: Any, state: Sequence[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise FrozenInstanceError(f"cannot change field '{name}'")

"""Records: dataclasses with slots whose methods are shared, where a dataclass generates and compiles its own.

That takes a dataclass half a millisecond, and a process that runs a model defines more than a hundred of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform

R = TypeVar("R")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, frozen: bool = True, eq: bool = True, kw_only: bool = False) -> Callable[[type[R]], type[R]]:
    """As `dataclass(slots=True)`, frozen by default. Filling one takes longer: not for what there are thousands of."""

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
        made: Any = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
        made.__init__ = _initializer(made)
        return made

    return make


def _initializer(cls: Any) -> Callable[..., None]:
    """Its `__init__`."""
    declared = {f.name: f for f in fields(cls)}
    names = (*cls.__match_args__, *(name for name in declared if name not in cls.__match_args__))
    put = [getattr(cls, name).__set__ for name in names]
    required = {name for name, f in declared.items() if f.default is MISSING and f.default_factory is MISSING}
    made = {name: f.default_factory for name, f in declared.items() if f.default_factory is not MISSING}
    defaults = {name: f.default for name, f in declared.items() if f.default is not MISSING}
    positional = len(cls.__match_args__)
    finish = getattr(cls, "__post_init__", None)

    def complete(values: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        given = dict(zip(names, values, strict=False))
        wrong = named.keys() & given.keys() or named.keys() - declared.keys() or required - named.keys() - given.keys()
        if wrong or len(values) > positional:
            raise TypeError(f"{cls.__name__}({', '.join(names)}): {', '.join(wrong) or len(values)} given wrongly")
        given = {**defaults, **given, **named}
        return [given[name] if name in given else made[name]() for name in names]

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        whole = len(values) == len(names) == positional and not named
        for assign, value in zip(put, values if whole else complete(values, named), strict=True):
            assign(self, value)
        if finish is not None:
            finish(self)

    return __init__


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, f.name) for f in fields(self)])


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

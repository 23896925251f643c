"""Functions that replace the symbolic sizes in an object of a plan by numbers; one function per object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from operator import itemgetter
from typing import Any

from irload.core.shape import Shape
from irload.core.size import is_size
from irload.core.tensor import TensorType
from irload.plan.ir.program import Step, Value
from irload.plan.ir.sized import PLAIN, field_names

Build = Callable[[Sequence[int]], Any]
"""Takes the values of all sizes and returns an object with numbers instead of sizes."""


def builder(item: Any, index: Callable[[Any], int]) -> Build | None:
    """Return the `Build` of an object, or None if it contains no sizes. `index`: returns the position of a size."""
    if is_size(item):
        return itemgetter(index(item))
    if isinstance(item, Shape) and not item.is_static:
        return None
    parts = parts_of(item)
    builds = [builder(part, index) for part in parts]
    changed = [(k, build) for k, build in enumerate(builds) if build is not None]
    if not changed:
        return None
    create = _creator(item)
    if all(is_size(parts[k]) for k, _ in changed):  # the most frequent case
        numbers = [(k, index(parts[k])) for k, _ in changed]

        def numbered(values: Sequence[int]) -> Any:
            new_parts = list(parts)
            for k, n in numbers:
                new_parts[k] = values[n]
            return create(new_parts)

        return numbered

    def build(values: Sequence[int]) -> Any:
        new_parts = list(parts)
        for k, part in changed:
            new_parts[k] = part(values)
        return create(new_parts)

    return build


def parts_of(item: Any) -> Sequence[Any]:
    """Return the parts of an object that may contain sizes; none for values and steps of a program."""
    if type(item) in PLAIN:
        return ()
    if isinstance(item, tuple | list):
        return item
    if isinstance(item, slice):
        return item.start, item.stop, item.step
    if isinstance(item, Shape):
        return item.static if item.is_static else ()
    if isinstance(item, TensorType):
        return (item.shape,)
    names = field_names(type(item))
    if names is None or isinstance(item, Value | Step):
        return ()
    return [getattr(item, name) for name in names]


def _creator(item: Any) -> Callable[[list[Any]], Any]:
    """Return the function that creates an object of the same class from other parts."""
    if isinstance(item, tuple | list):
        return type(item)
    if isinstance(item, slice):
        return lambda parts: slice(*parts)
    if isinstance(item, Shape):
        return lambda parts: Shape(*parts)
    if isinstance(item, TensorType):
        return lambda parts: TensorType(item.element, parts[0])
    declared = fields(item)
    if all(f.init and not f.kw_only for f in declared):
        return lambda parts: type(item)(*parts)  # a third of the time of dataclasses.replace
    names = [f.name for f in declared]
    return lambda parts: replace(item, **dict(zip(names, parts, strict=True)))

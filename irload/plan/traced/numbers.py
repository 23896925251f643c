"""The sizes of a traced plan, numbered, and the replacement of sizes by their numbers at one shape."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass, replace
from typing import Any

from irload.core.shape import Shape
from irload.core.size import is_size, terms_of
from irload.core.tensor import TensorType
from irload.core.trace import Trace
from irload.plan.ir.program import Step, Value
from irload.plan.ir.sized import hashable
from irload.plan.ir.strides import Strided


class Numbers:
    """The distinct sizes of a trace in use. Every object is registered with `add` before `close`."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._found: dict[Any, int] = {}
        self._sizes: list[Any] = []
        self._forms: dict[Hashable, int] = {}
        self._items: list[Any] = []
        self._fixed: list[Any] = []
        """The objects without sizes; None for others."""
        self._sizes_of_forms: list[frozenset[int]] = []
        self.evaluate: Callable[[Sequence[int]], list[int]] = trace.compiled([])
        """The values of all sizes for values of the symbols."""

    def close(self) -> None:
        """Compile `evaluate`."""
        self.evaluate = self._trace.compiled(list(map(terms_of, self._sizes)))

    def add(self, item: Any) -> bool:
        """Register the sizes in an object of a plan; True if there are any."""
        if is_size(item):
            self.index(item)
            return True
        found = [self.add(part) for part in _parts(item)]  # of all parts
        return any(found)

    def sizes(self, item: Any) -> frozenset[int]:
        """The positions of the sizes in an object of a plan."""
        if is_size(item):
            return frozenset((self.index(item),))
        return frozenset[int]().union(*map(self.sizes, _parts(item)))

    def sizes_of_form(self, form: int) -> frozenset[int]:
        """The positions of the sizes in the objects of a form."""
        return self._sizes_of_forms[form]

    def form(self, item: Any) -> int:
        """The number of an object that equals all others of this form at every shape, for `items`."""
        key = hashable(item)
        if key not in self._forms:
            self._forms[key] = len(self._items)
            self._items.append(item)
            self._fixed.append(None if self.add(item) else item)
            self._sizes_of_forms.append(self.sizes(item))
        return self._forms[key]

    def items(
        self, values: Sequence[int], before: Items | None = None, changed: AbstractSet[int] = frozenset()
    ) -> Items:
        """The objects of all forms with these values of the sizes; objects without a changed size are kept."""
        if before is None:
            return Items(self, self._items, list(self._fixed), values)
        kept = zip(before.found, self._sizes_of_forms, strict=True)
        return Items(self, self._items, [f if sizes.isdisjoint(changed) else None for f, sizes in kept], values)

    def index(self, size: Any) -> int:
        """The position of a size in the result of `evaluate`."""
        key = size.key
        if key not in self._found:
            self._found[key] = len(self._sizes)
            self._sizes.append(size)
        return self._found[key]

    def replaced(self, item: Any, values: Sequence[int]) -> Any:
        """The object with sizes replaced by their values; unchanged if it has no sizes. Values of programs are kept."""
        if is_size(item):
            return values[self._found[item.key]]
        if isinstance(item, tuple | list):
            parts: list[Any] = [self.replaced(part, values) for part in item]  # pyright: ignore[reportUnknownVariableType]
            same = all(a is b for a, b in zip(parts, item, strict=True))  # pyright: ignore[reportUnknownArgumentType]
            return item if same else type(item)(parts)  # pyright: ignore[reportUnknownVariableType]
        if isinstance(item, slice):
            return slice(*(self.replaced(part, values) for part in (item.start, item.stop, item.step)))
        if isinstance(item, Shape):
            return Shape(*self.replaced(item.static, values)) if item.is_static else item
        if isinstance(item, TensorType):
            return TensorType(item.element, self.replaced(item.shape, values))
        if type(item) is Strided:  # the most frequent record
            shape, strides = self.replaced(item.shape, values), self.replaced(item.strides, values)
            return Strided(shape, strides, self.replaced(item.offset, values))
        if _is_plain_record(item):
            changed = {f.name: self.replaced(getattr(item, f.name), values) for f in fields(item)}
            new = {name: value for name, value in changed.items() if value is not getattr(item, name)}
            return replace(item, **new) if new else item
        return item


class Items:
    """The objects of all forms at one shape, created on first use."""

    def __init__(self, numbers: Numbers, items: Sequence[Any], found: list[Any], values: Sequence[int]) -> None:
        self._numbers, self._items, self._values = numbers, items, values
        self.found = found

    def __getitem__(self, form: int) -> Any:
        found = self.found[form]
        if found is None:
            found = self.found[form] = self._numbers.replaced(self._items[form], self._values)
        return found


def _parts(item: Any) -> Sequence[Any]:
    """The objects within one that may contain sizes."""
    if isinstance(item, tuple | list):
        return item  # pyright: ignore[reportUnknownVariableType]
    if isinstance(item, slice):
        return item.start, item.stop, item.step
    if isinstance(item, Shape):
        return item.static if item.is_static else ()
    if isinstance(item, TensorType):
        return (item.shape,)
    return [getattr(item, f.name) for f in fields(item)] if _is_plain_record(item) else ()


def _is_plain_record(item: Any) -> bool:
    return is_dataclass(item) and not isinstance(item, type | Value | Step)

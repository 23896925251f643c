"""Numbers the symbolic sizes of a traced plan, and replaces sizes by their values at one shape."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Generic, TypeVar

from irload.core.polynomial import Terms
from irload.core.size import is_size, size_of, terms_of
from irload.core.trace import Trace
from irload.plan.ir.building import Build, builder, parts_of
from irload.plan.ir.sized import hashable

T = TypeVar("T")

SETS = 16
"""Maximum number of sets of changed sizes for which the dependent objects are cached."""


class Dependents(Generic[T]):
    """Ordered objects, each with the positions of the sizes on which it depends. `add` all before calling `of`."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self.sizes: list[frozenset[int]] = []
        self._of: dict[frozenset[int], list[T]] = {}

    def add(self, item: T, sizes: frozenset[int]) -> None:
        """Append an object."""
        self.items.append(item)
        self.sizes.append(sizes)

    def of(self, changed: AbstractSet[int]) -> list[T]:
        """Return the objects that depend on at least one of these sizes, in order."""
        key = frozenset(changed)
        dependents = self._of.get(key)
        if dependents is None:
            if len(self._of) >= SETS:
                self._of.clear()
            pairs = zip(self.items, self.sizes, strict=True)
            dependents = self._of[key] = [item for item, sizes in pairs if not sizes.isdisjoint(key)]
        return dependents


class Numbers:
    """The distinct sizes that objects of a traced plan contain. `add` all objects before calling `close`.

    A *form* is a set of objects that are equal at every shape, such as the shapes of two values.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._positions: dict[Any, int] = {}
        self._sizes: list[Any] = []
        self._forms: dict[Hashable, int] = {}
        self._builders: list[Build] = []
        self._fixed: list[Any] = []
        """By form: the object if it has no sizes, otherwise None."""
        self._dependents = Dependents[int]()
        """The forms, by the sizes on which they depend."""
        self.evaluate: Callable[[Sequence[int]], list[int]] = trace.compiled([])
        """Returns the values of all sizes for values of the symbols."""

    def close(self) -> None:
        """Compile `evaluate`."""
        self.evaluate = self._trace.compiled(list(map(terms_of, self._sizes)))

    def add(self, item: Any) -> bool:
        """Register the sizes in an object of a plan; True if there are any."""
        if is_size(item):
            self.index(item)
            return True
        sized = [self.add(part) for part in parts_of(item)]  # a list: `any` would stop early
        return any(sized)

    def sizes(self, item: Any) -> frozenset[int]:
        """Return the positions of all sizes in an object of a plan."""
        if is_size(item):
            return frozenset((self.index(item),))
        return frozenset[int]().union(*map(self.sizes, parts_of(item)))

    def sizes_of_form(self, form: int) -> frozenset[int]:
        """Return the positions of all sizes in the objects of a form."""
        return self._dependents.sizes[form]

    def form(self, item: Any) -> int:
        """Return the number of the form of an object, which is its index into `items`."""
        key = hashable(item)
        if key not in self._forms:
            self._forms[key] = form = len(self._fixed)
            self._fixed.append(None if self.add(item) else item)
            self._builders.append(self.builder(item))
            self._dependents.add(form, self.sizes(item))
        return self._forms[key]

    def items(
        self, values: Sequence[int], before: Items | None = None, changed: AbstractSet[int] = frozenset()
    ) -> Items:
        """Return the objects of all forms for values of the sizes. Objects of `before` with equal sizes are reused."""
        if before is None:
            return Items(self._builders, list(self._fixed), values)
        objects = before.objects.copy()
        for form in self._dependents.of(changed):
            objects[form] = None
        return Items(self._builders, objects, values)

    def symbolic(self, symbols: Sequence[int]) -> SymbolicNumbers:
        """Return all sizes as sizes of a new trace, whose symbols have these values."""
        return SymbolicNumbers(self._trace.at(symbols), list(map(terms_of, self._sizes)))

    def index(self, size: Any) -> int:
        """Return the position of a size in the result of `evaluate`."""
        key = size.key
        if key not in self._positions:
            self._positions[key] = len(self._sizes)
            self._sizes.append(size)
        return self._positions[key]

    def builder(self, item: Any) -> Build:
        """Return the `Build` of an object. For an object without sizes, the `Build` returns the object itself."""
        return builder(item, self.index) or (lambda values: item)


class SymbolicNumbers(Sequence[Any]):
    """The sizes with these terms in a trace, each created on first use."""

    def __init__(self, trace: Trace, terms: Sequence[Terms]) -> None:
        self.trace = trace
        self._terms = terms
        self._created: dict[int, Any] = {}

    def __getitem__(self, index: Any) -> Any:
        size = self._created.get(index)
        if size is None:
            size = self._created[index] = size_of(self.trace, self._terms[index])
        return size

    def __len__(self) -> int:
        return len(self._terms)


class Items:
    """The objects of all forms at one shape, each created on first use."""

    def __init__(self, builders: Sequence[Build], objects: list[Any], values: Sequence[int]) -> None:
        self._builders, self._values = builders, values
        self.objects = objects

    def __getitem__(self, form: int) -> Any:
        item = self.objects[form]
        if item is None:
            item = self.objects[form] = self._builders[form](self._values)
        return item

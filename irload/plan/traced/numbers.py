"""The sizes of a traced plan, numbered, and the replacement of sizes by their numbers at one shape."""

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
"""Sets of changed sizes for which the objects that depend on them are cached."""


class Dependents(Generic[T]):
    """Objects, in order, and for each the positions of the `sizes` on which it depends. All are added before `of`."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self.sizes: list[frozenset[int]] = []
        self._of: dict[frozenset[int], list[T]] = {}

    def add(self, item: T, sizes: frozenset[int]) -> None:
        """Append an object."""
        self.items.append(item)
        self.sizes.append(sizes)

    def of(self, changed: AbstractSet[int]) -> list[T]:
        """The objects that depend on some of these sizes, in order."""
        key = frozenset(changed)
        found = self._of.get(key)
        if found is None:
            if len(self._of) >= SETS:
                self._of.clear()
            pairs = zip(self.items, self.sizes, strict=True)
            found = self._of[key] = [item for item, sizes in pairs if not sizes.isdisjoint(key)]
        return found


class Numbers:
    """The distinct sizes of a trace in use. Every object is registered with `add` before `close`."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._found: dict[Any, int] = {}
        self._sizes: list[Any] = []
        self._forms: dict[Hashable, int] = {}
        self._builders: list[Build] = []
        self._fixed: list[Any] = []
        """The objects without sizes; None for others."""
        self._dependents = Dependents[int]()
        """The forms."""
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
        found = [self.add(part) for part in parts_of(item)]  # of all parts
        return any(found)

    def sizes(self, item: Any) -> frozenset[int]:
        """The positions of the sizes in an object of a plan."""
        if is_size(item):
            return frozenset((self.index(item),))
        return frozenset[int]().union(*map(self.sizes, parts_of(item)))

    def sizes_of_form(self, form: int) -> frozenset[int]:
        """The positions of the sizes in the objects of a form."""
        return self._dependents.sizes[form]

    def form(self, item: Any) -> int:
        """The number of an object that equals all others of this form at every shape, for `items`."""
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
        """The objects of all forms with these values of the sizes; objects without a changed size are kept."""
        if before is None:
            return Items(self._builders, list(self._fixed), values)
        found = before.found.copy()
        for form in self._dependents.of(changed):
            found[form] = None
        return Items(self._builders, found, values)

    def symbolic(self, symbols: Sequence[int]) -> SymbolicNumbers:
        """All sizes as sizes of a new trace, whose symbols have these values."""
        return SymbolicNumbers(self._trace.at(symbols), list(map(terms_of, self._sizes)))

    def index(self, size: Any) -> int:
        """The position of a size in the result of `evaluate`."""
        key = size.key
        if key not in self._found:
            self._found[key] = len(self._sizes)
            self._sizes.append(size)
        return self._found[key]

    def builder(self, item: Any) -> Build:
        """The function from the values of the sizes to the object with numbers; the object itself without sizes."""
        return builder(item, self.index) or (lambda values: item)


class SymbolicNumbers(Sequence[Any]):
    """The sizes that polynomials are in a trace, created on first use."""

    def __init__(self, trace: Trace, terms: Sequence[Terms]) -> None:
        self.trace = trace
        self._terms = terms
        self._found: dict[int, Any] = {}

    def __getitem__(self, index: Any) -> Any:
        found = self._found.get(index)
        if found is None:
            found = self._found[index] = size_of(self.trace, self._terms[index])
        return found

    def __len__(self) -> int:
        return len(self._terms)


class Items:
    """The objects of all forms at one shape, created on first use."""

    def __init__(self, builders: Sequence[Build], found: list[Any], values: Sequence[int]) -> None:
        self._builders, self._values = builders, values
        self.found = found

    def __getitem__(self, form: int) -> Any:
        found = self.found[form]
        if found is None:
            found = self.found[form] = self._builders[form](self._values)
        return found

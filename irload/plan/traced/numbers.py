"""The sizes of a traced plan, numbered, and the replacement of sizes by their numbers at one shape."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from irload.core.size import is_size, terms_of
from irload.core.trace import Trace
from irload.plan.ir.building import Build, builder, parts_of
from irload.plan.ir.sized import hashable

SETS = 16
"""Sets of changed sizes for which the objects that depend on them are cached."""


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
        self._sizes_of_forms: list[frozenset[int]] = []
        self._changed: dict[frozenset[int], list[int]] = {}
        """The forms that depend on sets of sizes."""
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
        return self._sizes_of_forms[form]

    def form(self, item: Any) -> int:
        """The number of an object that equals all others of this form at every shape, for `items`."""
        key = hashable(item)
        if key not in self._forms:
            self._forms[key] = len(self._fixed)
            self._fixed.append(None if self.add(item) else item)
            self._builders.append(self.builder(item))
            self._sizes_of_forms.append(self.sizes(item))
        return self._forms[key]

    def items(
        self, values: Sequence[int], before: Items | None = None, changed: AbstractSet[int] = frozenset()
    ) -> Items:
        """The objects of all forms with these values of the sizes; objects without a changed size are kept."""
        if before is None:
            return Items(self._builders, list(self._fixed), values)
        found = before.found.copy()
        for form in self._depending(frozenset(changed)):
            found[form] = None
        return Items(self._builders, found, values)

    def _depending(self, changed: frozenset[int]) -> list[int]:
        """The forms with some of these sizes."""
        found = self._changed.get(changed)
        if found is None:
            if len(self._changed) >= SETS:
                self._changed.clear()
            forms = enumerate(self._sizes_of_forms)
            found = self._changed[changed] = [form for form, sizes in forms if not sizes.isdisjoint(changed)]
        return found

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

"""Kernels of a step as functions of sizes: selected once with symbols, then evaluated for each shape.

The selection runs on sizes that are expressions over symbols, and its trace records a guard for each decision. At
shapes for which the guards hold it would select the same code, with other values of the same expressions as numbers and
distances. Selections that require numbers raise an error; they run for each shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irload.core.polynomial import Key, Terms, key_of
from irload.core.size import Deferred, fixed, terms_of
from irload.core.tensor import Array
from irload.core.trace import Trace
from irload.plan.backends.base import BoundSizes
from irload.plan.backends.llvm.choosing import ChosenKernel
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary
from irload.plan.backends.llvm.launching import GroupLaunch
from irload.plan.backends.llvm.loader import Code
from irload.plan.ir.building import Build, builder
from irload.record import record

WORDS = 7
"""Words of a kernel that is chosen for each shape: its code, units and scratch memory, and at most four numbers."""


@record(eq=False)
class Operands:
    """The pointers of a launch for each step of a group: a row of `fixed`, plus distances, plus addresses of values.

    `values`: the numbers of the values for the pointers `columns`, one row per step.
    """

    fixed: Array
    distances: Sequence[Any]
    columns: Sequence[int]
    values: Array

    def pointers(self, distances: Sequence[int], sizes: BoundSizes) -> Array:
        """The pointers of each step for these distances."""
        found = self.fixed + distances
        if self.columns:
            found[:, self.columns] += sizes.addresses(self.values)
        return found


@record(eq=False)
class TracedLaunch:
    """A launch as positions among the words of its selection. `whole`: creates the kernel from the words.

    `function`, `units`, `scratch`, `numbers`: of the kernel; `distances`: of its pointers.
    """

    function: int
    units: int
    scratch: int
    numbers: Sequence[int]
    whole: Build
    distances: Sequence[int]
    operands: Operands
    pointers: Sequence[int | Temporary]

    def at(self, words: Sequence[int], sizes: BoundSizes) -> GroupLaunch:
        """The launch for these words."""
        pointers = self.operands.pointers([words[k] for k in self.distances], sizes)
        launch, numbers = Launch(self.whole(words), self.pointers), [words[k] for k in self.numbers]
        return GroupLaunch(launch, words[self.function], pointers, numbers, words[self.units], words[self.scratch])


class TracedSelection:
    """The launches of a group of steps as functions of the symbols of a trace, which is complete.

    `flops` and `temporary`: the positions of the operations and of the bytes of temporary memory among the words.
    """

    def __init__(
        self,
        trace: Trace,
        launches: Sequence[Launch],
        operands: Sequence[Operands],
        flops: int,
        temporary: int,
        keep: Sequence[Array],
        code_of: Callable[[Kernel], Code],
    ) -> None:
        self.keep = keep
        self._terms: list[Terms] = []
        self._places: dict[Key, int] = {}
        self._deferred: dict[int, Callable[[int], int]] = {}
        self._code_of = code_of
        self.flops, self.temporary = self._index(flops), self._index(temporary)
        self._chosen: list[tuple[int, Callable[[Sequence[int]], tuple[Kernel, Sequence[int]]]]] = []
        """The kernels that are chosen, each with the position of its words."""
        self.launches: list[TracedLaunch] = []
        for launch, own in zip(launches, operands, strict=True):
            distances = [self._index(distance) for distance in own.distances]
            pointers = [p if isinstance(p, Temporary) else 0 for p in launch.pointers]
            self.launches.append(TracedLaunch(*self._kernel(launch.kernel), distances, own, pointers))
        self._holds = trace.test()
        self._words: Callable[[Sequence[int]], list[int]] = trace.compiled(self._terms)

    def words(self, symbols: Sequence[int]) -> list[int] | None:
        """The numbers of which the launches consist, for values of the symbols; None if a guard fails."""
        if not self._holds(symbols):
            return None
        words = self._words(symbols)
        for k, function in self._deferred.items():
            words[k] = function(words[k])
        for first, choose in self._chosen:
            words[first : first + WORDS] = choose(words)[1]
        return words

    def __len__(self) -> int:
        return len(self._terms)

    def varies(self, word: int) -> bool:
        """True for a word that depends on the symbols."""
        return any(self._terms[word]) or any(first <= word < first + WORDS for first, _ in self._chosen)

    def _kernel(self, kernel: Kernel) -> tuple[int, int, int, list[int], Build]:
        """The positions of the function, units, scratch memory and numbers of a kernel, and its builder."""
        if isinstance(kernel, ChosenKernel):
            choose, first = kernel.builder(self._index, self._described), len(self._terms)
            self._terms += [terms_of(0)] * WORDS
            self._chosen.append((first, choose))
            function, units, scratch, *numbers = range(first, first + WORDS)
            return function, units, scratch, numbers, lambda words: choose(words)[0]
        whole = builder(kernel, self._index) or (lambda words: kernel)
        function = self._index(self._code_of(_at_traced_shape(kernel.code)).address)
        numbers = [self._index(number) for number in kernel.numbers]
        return function, self._index(kernel.count), self._index(kernel.scratch), numbers, whole

    def _described(self, kernel: Kernel) -> list[int]:
        """The words of a kernel that is chosen."""
        words = [self._code_of(kernel.code).address, kernel.count, kernel.scratch, *kernel.numbers]
        if len(words) > WORDS:
            raise AssertionError("a kernel has too many numbers")
        return words + [0] * (WORDS - len(words))

    def _index(self, number: Any) -> int:
        """The position of a number among the words."""
        deferred = isinstance(number, Deferred)
        terms = terms_of(number.size if deferred else number)
        found = None if deferred else self._places.get(key_of(terms))
        if found is None:
            found = len(self._terms)
            self._terms.append(terms)
            if deferred:
                self._deferred[found] = number.function
            else:
                self._places[key_of(terms)] = found
        return found


def _at_traced_shape(item: Any) -> Any:
    """An object of a plan whose sizes are fixed to their values."""
    found: list[int] = []

    def index(size: Any) -> int:
        found.append(fixed(size))
        return len(found) - 1

    build = builder(item, index)
    return item if build is None else build(found)


def operands_of(launch: Launch, count: int, resolved: Callable[[Any], Array | tuple[Array, Any]]) -> Operands:
    """The pointers of a launch with symbols.

    `resolved`: the addresses in constants for each step, or the numbers of values and the distance from them.
    """
    pointers: Sequence[Any] = launch.pointers
    constants = np.zeros((count, len(pointers)), np.int64)
    distances: list[Any] = [0] * len(pointers)
    columns: list[int] = []
    values: list[Array] = []
    for k, pointer in enumerate(pointers):
        if isinstance(pointer, Temporary):
            distances[k] = pointer.offset
        elif not isinstance(pointer, int) or pointer:
            found = resolved(pointer)
            if isinstance(found, tuple):
                values.append(found[0])
                distances[k] = found[1]
                columns.append(k)
            else:
                constants[:, k] = found
    return Operands(constants, distances, columns, np.stack(values, 1) if values else constants[:, :0])

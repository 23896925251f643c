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
from irload.core.size import Deferred, NotDefined, fixed, terms_of
from irload.core.tensor import Array
from irload.core.trace import Trace
from irload.plan.backends.base import BoundSizes
from irload.plan.backends.llvm.choosing import ChosenKernel
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary, address
from irload.plan.backends.llvm.launching import GroupLaunch, Selected
from irload.plan.backends.llvm.loader import Code
from irload.plan.ir.building import Build, builder
from irload.record import record


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

        def create() -> Launch:
            return Launch(self.whole(words), self.pointers)

        properties = [words[k] for k in self.numbers], words[self.units], words[self.scratch]
        return GroupLaunch(create, self.pointers, words[self.function], pointers, *properties)


class Words(list[int]):
    """The numbers of a selection at one shape, and the `arrays` to which some of them point."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(numbers)
        self.arrays: list[Array] = []


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
        self._deferred: list[tuple[int, Callable[..., int | Array], list[int]]] = []
        """The functions of sizes: for each the word of its value, or of its address, and the words of its arguments."""
        self._code_of = code_of
        self.flops, self.temporary = self._index(flops), self._index(temporary)
        self._chosen: list[tuple[range, Callable[[Sequence[int]], tuple[Kernel, Sequence[int]]]]] = []
        """The kernels that are chosen, each with the positions of its words: code, units, scratch memory, numbers."""
        self.launches: list[TracedLaunch] = []
        for launch, own in zip(launches, operands, strict=True):
            distances = [self._index(distance) for distance in own.distances]
            pointers = [p if isinstance(p, Temporary) else 0 for p in launch.pointers]
            self.launches.append(TracedLaunch(*self._kernel(launch.kernel), distances, own, pointers))
        self._words: Callable[[Sequence[int]], list[int] | None] = trace.guarded(self._terms)
        numbers = [k for k, terms in enumerate(self._terms) if any(terms)]
        functions = [k for k, *_ in self._deferred]
        kernels = [k for places, _ in self._chosen for k in places]
        self.varying = frozenset((*numbers, *functions, *kernels))
        """The words that depend on the symbols."""

    def words(self, symbols: Sequence[int]) -> Words | None:
        """The numbers of which the launches consist, for values of the symbols; None if a guard fails."""
        numbers = self._words(symbols)
        if numbers is None:
            return None
        words = Words(numbers)
        try:
            for k, function, given in self._deferred:
                value = function(*[words[n] for n in given])
                if isinstance(value, np.ndarray):
                    words.arrays.append(value)
                    value = address(value)
                words[k] = value
        except NotDefined:
            return None
        for places, choose in self._chosen:
            described = choose(words)[1]
            if len(described) > len(places):
                return None
            words[places.start : places.start + len(described)] = described
        return words

    def at(self, words: Words, positions: Sequence[int], sizes: BoundSizes) -> Selected:
        """The launches at a shape of the steps at these positions in the segment."""
        launches = [launch.at(words, sizes) for launch in self.launches]
        return Selected(positions, words[self.flops], launches, [*self.keep, *words.arrays], self)

    def __len__(self) -> int:
        return len(self._terms)

    def _kernel(self, kernel: Kernel) -> tuple[int, int, int, list[int], Build]:
        """The positions of the function, units, scratch memory and numbers of a kernel, and its builder."""
        if isinstance(kernel, ChosenKernel):
            choose, first = kernel.builder(self._index, self._described), len(self._terms)
            places = range(first, first + len(self._described(kernel.here)))
            self._terms += [terms_of(0)] * len(places)
            self._chosen.append((places, choose))
            function, units, scratch, *numbers = places
            return function, units, scratch, numbers, lambda words: choose(words)[0]
        whole = builder(kernel, self._index) or (lambda words: kernel)
        function = self._index(self._code_of(_at_traced_shape(kernel.code)).address)
        numbers = [self._index(number) for number in kernel.numbers]
        return function, self._index(kernel.count), self._index(kernel.scratch), numbers, whole

    def _described(self, kernel: Kernel) -> list[int]:
        """The words of a kernel that is chosen."""
        return [self._code_of(kernel.code).address, kernel.count, kernel.scratch, *kernel.numbers]

    def _index(self, number: Any) -> int:
        """The position of a number among the words."""
        if isinstance(number, Deferred):
            given = [self._index(size) for size in number.sizes]
            self._terms.append({})
            self._deferred.append((len(self._terms) - 1, number.function, given))
            return len(self._terms) - 1
        terms = terms_of(number)
        found = self._places.setdefault(key_of(terms), len(self._terms))
        if found == len(self._terms):
            self._terms.append(terms)
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
        elif isinstance(pointer, Deferred):
            distances[k] = pointer
        elif not isinstance(pointer, int) or pointer:
            found = resolved(pointer)
            if isinstance(found, tuple):
                values.append(found[0])
                distances[k] = found[1]
                columns.append(k)
            else:
                constants[:, k] = found
    return Operands(constants, distances, columns, np.stack(values, 1) if values else constants[:, :0])

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
from irload.core.size import Deferred, NotDefined, fixed, hint, is_size, terms_of
from irload.core.tensor import Array
from irload.core.trace import Trace
from irload.plan.backends.llvm.choosing import ChosenKernel
from irload.plan.backends.llvm.kernel import Kernel, Launch, address
from irload.plan.backends.llvm.parts import PROPERTIES, Codes, Part, Record, Term, Words
from irload.plan.ir.building import Build, builder
from irload.plan.ir.program import Step
from irload.record import record


@record()
class Word:
    """A word of a selection, by its position, instead of a size."""

    position: int


class TracedSelection:
    """The launches of a group of steps as functions of the symbols of a trace, which is complete.

    `positions`: of the steps in the segment; `argument`: the argument that a pointer is; `step`: the first step;
    `temporary`: the bytes of temporary memory of a step; `keep`: arrays that must outlive the launches.
    """

    def __init__(
        self,
        trace: Trace,
        positions: Sequence[int],
        launches: Sequence[Launch],
        argument: Callable[[Any], Term],
        step: Step,
        temporary: int,
        keep: Sequence[Array],
        codes: Codes,
    ) -> None:
        self._codes = codes
        self._terms: list[Terms] = [terms_of(0), terms_of(temporary)]
        self._places: dict[Key, int] = {}
        self._deferred: list[tuple[int, Callable[..., int | Array], list[int]]] = []
        """The functions of sizes: for each the word of its value, or of its address, and the words of its arguments."""
        self._chosen: list[tuple[range, Callable[[Sequence[int]], tuple[Kernel, Sequence[int]]]]] = []
        """The kernels that are chosen, each with the positions of its words: properties and numbers."""
        records = [self._record(launch, argument, step) for launch in launches]
        self.parts = (Part(positions, records, keep, self._index, is_traced=True),)
        self._words: Callable[[Sequence[int]], list[int] | None] = trace.guarded(self._terms)

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

    def _record(self, launch: Launch, argument: Callable[[Any], Term], step: Step) -> Record:
        create, properties, numbers = self._described(launch.kernel, step)
        terms = [Term(size=size) for size in (*properties, step.flops)]
        return Record(create, [*terms, *map(argument, launch.pointers), *(Term(size=size) for size in numbers)])

    def _described(self, kernel: Kernel, step: Step) -> tuple[Build, Sequence[Any], Sequence[Any]]:
        """The function that creates a kernel from the words, its properties without the operations, and its numbers."""
        if isinstance(kernel, ChosenKernel):
            choose = kernel.builder(self._index, self._words_of)
            places = self._added(len(self._words_of(kernel.here)))
            self._chosen.append((places, choose))
            words = list(map(Word, places))
            return lambda words: choose(words)[0], words[: PROPERTIES - 1], words[PROPERTIES - 1 :]
        create = builder(kernel, self._index) or (lambda words: kernel)
        code = self._codes.code(_with_numbers(kernel.code, fixed)).address
        return create, [code, kernel.count, kernel.scratch, self._cycles(kernel, step)], kernel.numbers

    def _cycles(self, kernel: Kernel, step: Step) -> int:
        """The cycles of a kernel that threads may share: at the traced shape, then in proportion to the step's work."""
        if not self._codes.shares:
            return 0
        here, work = int(_with_numbers(kernel, hint).cycles), step.flops
        if not is_size(work):
            work = sum(v.nbytes for v in (*step.inputs, *step.outputs) if not v.is_constant)
        return here * work // hint(work)

    def _words_of(self, kernel: Kernel) -> list[int]:
        """The words of a kernel that is chosen."""
        return [*self._codes.described(kernel), *kernel.numbers]

    def _added(self, count: int) -> range:
        """The positions of new words, which are not polynomials."""
        self._terms += [{}] * count
        return range(len(self._terms) - count, len(self._terms))

    def _index(self, number: Any) -> int:
        """The position of a number among the words."""
        if isinstance(number, Word):
            return number.position
        if isinstance(number, Deferred):
            given = [self._index(size) for size in number.sizes]
            (place,) = self._added(1)
            self._deferred.append((place, number.function, given))
            return place
        terms = terms_of(number)
        found = self._places.setdefault(key_of(terms), len(self._terms))
        if found == len(self._terms):
            self._terms.append(terms)
        return found


def _with_numbers(item: Any, number: Callable[[Any], int]) -> Any:
    """An object of a plan with numbers instead of its sizes."""
    found: list[int] = []

    def index(size: Any) -> int:
        found.append(number(size))
        return len(found) - 1

    build = builder(item, index)
    return item if build is None else build(found)

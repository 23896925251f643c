"""The kernels of a step as functions of sizes: selected once with symbols, then evaluated for each shape.

The selection runs on sizes that are expressions over symbols, and its trace records a guard for each decision. At
shapes at which all guards hold, it would select the same code; only the values of the expressions for numbers and
offsets differ. Selections that do not support symbols raise an error, and are repeated for each shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irload.core.polynomial import Key, Terms, key_of
from irload.core.size import Deferred, NotDefined, fixed, hint, is_size, terms_of
from irload.core.tensor import Array
from irload.core.trace import Trace
from irload.plan.backends.llvm.choosing import ChosenKernel, with_numbers
from irload.plan.backends.llvm.kernel import Kernel, Launch, address
from irload.plan.backends.llvm.parts import PROPERTIES, Codes, LaunchRecord, TablePart, Term, Words
from irload.plan.ir.building import Build, builder
from irload.plan.ir.program import Step
from irload.record import record


@record()
class Word:
    """A reference to a word of a selection, used like a size."""

    position: int


class TracedSelection:
    """The launches of a group of steps as functions of the symbols of a completed trace.

    `positions`: of the steps in the segment; `argument`: converts a pointer to an argument; `step`: the first step;
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
        self._positions: dict[Key, int] = {}
        self._deferred: list[tuple[int, Callable[..., int | Array], list[int]]] = []
        """Deferred functions of sizes: position of the result or of its address, function, positions of arguments."""
        self._chosen: list[tuple[range, Callable[[Sequence[int]], tuple[Kernel, Sequence[int]]]]] = []
        """Kernels that are chosen for each shape: the positions of their properties and numbers, and the function."""
        records = [self._record(launch, argument, step) for launch in launches]
        self.parts = (TablePart(positions, records, keep, codes, self._index, is_traced=True),)
        self._words: Callable[[Sequence[int]], list[int] | None] = trace.guarded(self._terms)

    def words(self, symbols: Sequence[int]) -> Words | None:
        """The numbers of the launches for values of the symbols; None if a guard fails."""
        numbers = self._words(symbols)
        if numbers is None:
            return None
        words = Words(numbers)
        try:
            for k, function, arguments in self._deferred:
                value = function(*[words[n] for n in arguments])
                if isinstance(value, np.ndarray):
                    words.arrays.append(value)
                    value = address(value)
                words[k] = value
        except NotDefined:
            return None
        for positions, choose in self._chosen:
            described = choose(words)[1]
            if len(described) > len(positions):
                return None
            words[positions.start : positions.start + len(described)] = described
        return words

    def _record(self, launch: Launch, argument: Callable[[Any], Term], step: Step) -> LaunchRecord:
        create, code, properties, numbers = self._described(launch.kernel, step)
        sizes = [Term(size=size) for size in (*properties, step.flops)], [Term(size=size) for size in numbers]
        return LaunchRecord(create, code, [*sizes[0], *map(argument, launch.pointers), *sizes[1]])

    def _described(self, kernel: Kernel, step: Step) -> tuple[Build, Kernel | None, Sequence[Any], Sequence[Any]]:
        """For a launch: a function that creates the kernel from the words, its code unless it depends on the shape.

        Then the properties, except the operations, and the numbers of the kernel.
        """
        if isinstance(kernel, ChosenKernel):
            choose = kernel.builder(self._index, self._words_of)
            positions = self._added(PROPERTIES - 1 + len(kernel.here.numbers))
            self._codes.request(kernel.here.code)
            self._chosen.append((positions, choose))
            words = list(map(Word, positions))
            return lambda words: choose(words)[0], None, words[: PROPERTIES - 1], words[PROPERTIES - 1 :]
        create = builder(kernel, self._index) or (lambda words: kernel)
        code = with_numbers(kernel.code, fixed)
        self._codes.request(code)
        return create, code, [0, kernel.count, kernel.scratch, self._cycles(kernel, step)], kernel.numbers

    def _cycles(self, kernel: Kernel, step: Step) -> int:
        """The estimated cycles of a kernel, which decide whether threads share it; 0 for a single thread.

        They are exact at the traced shape, and proportional to the work of the step at other shapes.
        """
        if not self._codes.shares:
            return 0
        here, work = int(with_numbers(kernel, hint).cycles), step.flops
        if not is_size(work):
            work = sum(v.nbytes for v in (*step.inputs, *step.outputs) if not v.is_constant)
        return here * work // hint(work)

    def _words_of(self, kernel: Kernel) -> list[int]:
        """The properties and numbers of a chosen kernel."""
        return [*self._codes.described(kernel), *kernel.numbers]

    def _added(self, count: int) -> range:
        """Add words that are not polynomials, and return their positions."""
        self._terms += [{}] * count
        return range(len(self._terms) - count, len(self._terms))

    def _index(self, number: Any) -> int:
        """The position of a number among the words."""
        if isinstance(number, Word):
            return number.position
        if isinstance(number, Deferred):
            arguments = [self._index(size) for size in number.sizes]
            (position,) = self._added(1)
            self._deferred.append((position, number.function, arguments))
            return position
        terms = terms_of(number)
        known = self._positions.setdefault(key_of(terms), len(self._terms))
        if known == len(self._terms):
            self._terms.append(terms)
        return known

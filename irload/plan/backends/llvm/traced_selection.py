"""Kernels of a step as functions of sizes: selected once with symbols, then evaluated for each shape.

The selection runs on sizes that are expressions over symbols, and its trace records a guard for each decision. At
shapes for which the guards hold it would select the same code, with other values of the same expressions as numbers and
distances. Selections that require numbers raise an error; they run for each shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irload.core.size import Deferred, fixed, terms_of
from irload.core.tensor import Array
from irload.core.trace import Trace
from irload.plan.backends.base import BoundSizes
from irload.plan.backends.llvm.builder import Function
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary
from irload.plan.ir.building import Build, builder
from irload.record import record


@record(eq=False)
class EvaluatedKernel(Kernel):
    """A kernel whose numbers are evaluated. `whole`: creates the kernel with the same numbers as its fields."""

    compiled: Kernel
    words: tuple[int, ...]
    units: int
    memory: int
    whole: Callable[[], Kernel]

    @property
    def prepares(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride] - the same for all of a class
        return self.compiled.prepares

    @property
    def name(self) -> str:
        return self.compiled.name

    @property
    def why(self) -> str:
        return self.whole().why

    @property
    def code(self) -> Kernel:
        return self.compiled

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.words

    @property
    def count(self) -> int:
        return self.units

    @property
    def cycles(self) -> float:
        return self.whole().cycles

    @property
    def scratch(self) -> int:
        return self.memory

    def write(self, function: Function) -> None:
        self.compiled.write(function)


@record(eq=False)
class Operands:
    """The pointers of a launch for each step of a group: a row of `fixed`, plus distances, plus addresses of values.

    `values`: the numbers of the values for the pointers `columns`, one row per step.
    """

    fixed: Array
    distances: Sequence[Any]
    columns: Sequence[int]
    values: Array


@record(eq=False)
class _Part:
    """A launch: its code, where its words are, and how they create the whole kernel."""

    code: Kernel
    numbers: slice
    distances: slice
    units: int
    memory: int
    whole: Build
    operands: Operands
    pointers: Sequence[int | Temporary]


class TracedSelection:
    """The launches of a group of steps as functions of the symbols of a trace, which is complete."""

    def __init__(
        self,
        trace: Trace,
        launches: Sequence[Launch],
        operands: Sequence[Operands],
        flops: int,
        temporary: int,
        keep: Sequence[Array],
    ) -> None:
        self.keep = keep
        self._found: list[Any] = []
        self._deferred: list[tuple[int, Callable[[int], int]]] = []
        self._flops, self._temporary = self._index(flops), self._index(temporary)
        self._parts = [self._part(*each) for each in zip(launches, operands, strict=True)]
        self._holds = trace.test()
        self._words: Callable[[Sequence[int]], list[int]] = trace.compiled(list(map(terms_of, self._found)))

    def at(self, sizes: BoundSizes) -> tuple[int, int, list[Launch], list[Array]] | None:
        """The operations, the bytes of temporary memory, the launches and their pointers; None if a guard fails."""
        if not self._holds(sizes.symbols):
            return None
        words = self._words(sizes.symbols)
        for k, function in self._deferred:
            words[k] = function(words[k])
        launches: list[Launch] = []
        pointers: list[Array] = []
        for part in self._parts:
            numbers, units, memory = tuple(words[part.numbers]), words[part.units], words[part.memory]
            kernel = EvaluatedKernel(part.code, numbers, units, memory, lambda own=part.whole: own(words))
            launches.append(Launch(kernel, part.pointers))
            found = part.operands.fixed + words[part.distances]
            if part.operands.columns:
                found[:, part.operands.columns] += sizes.addresses(part.operands.values)
            pointers.append(found)
        return words[self._flops], words[self._temporary], launches, pointers

    def _part(self, launch: Launch, operands: Operands) -> _Part:
        kernel = launch.kernel
        return _Part(
            _at_traced_shape(kernel.code),
            self._slice(kernel.numbers),
            self._slice(operands.distances),
            self._index(kernel.count),
            self._index(kernel.scratch),
            builder(kernel, self._index) or (lambda words: kernel),
            operands,
            [p if isinstance(p, Temporary) else 0 for p in launch.pointers],
        )

    def _slice(self, numbers: Sequence[Any]) -> slice:
        first = len(self._found)
        for number in numbers:
            self._index(number)
        return slice(first, len(self._found))

    def _index(self, number: Any) -> int:
        """The position of a new word."""
        if isinstance(number, Deferred):
            self._deferred.append((len(self._found), number.function))
            number = number.size
        self._found.append(number)
        return len(self._found) - 1


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

"""Program: values, and the steps that make them, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from math import prod
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.graph import Node, Output
from irload.plan.ir.constant import Constant
from irload.record import record


class PlanInvalid(AssertionError):
    """A plan that breaks its own rules: a defect of irload, never of a file."""


@record(frozen=False, eq=False)
class Value:
    """A tensor of static shape that flows between steps. One with a `source` is constant."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    source: Constant | None = None
    name: str = ""
    used: bool = True
    """False for an output that no node of the graph takes."""
    origin: Output | None = None
    """The output of the graph that it is, where it is one as it stands there."""

    @staticmethod
    def of(array: Array, name: str = "") -> Value:
        """A constant."""
        return Value(array.shape, array.dtype, Constant.of(array), name=name)

    @property
    def is_constant(self) -> bool:
        """True when the values are known before the run. Asking costs nothing; asking for them may read the file."""
        return self.source is not None

    @property
    def constant(self) -> Array | None:
        """The values of a constant, None for all else."""
        return None if self.source is None else self.source.array

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        kind = "const " if self.is_constant else ""
        return f"<{kind}{self.name} {self.dtype}{list(self.shape)}>"


@record(frozen=False, eq=False)
class Step:
    """Base of all steps: the values it takes and makes, and the nodes of the graph that it stands for."""

    inputs: list[Value]
    outputs: list[Value]
    origin: tuple[Node, ...] = field(default=(), kw_only=True)

    @property
    def output(self) -> Value:
        """The only output."""
        (value,) = self.outputs
        return value

    @property
    def title(self) -> str:
        """What profiles and explanations call the step: the types it was made of."""
        return "+".join(dict.fromkeys(n.type for n in self.origin)) or type(self).__name__


class Program:
    """Steps in an order in which they can run, the values the caller fills and those it reads.

    A step that stands in a program is not changed but replaced, and its consumers stand in an index: so each rewrite
    costs as much as it changes, however long the program is.
    """

    def __init__(self, steps: Sequence[Step], inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.returned = frozenset(outputs)
        """The same as a set."""
        self.steps = list(steps)

    @property
    def steps(self) -> list[Step]:
        """The steps in order, a new list at each call."""
        return [step for place in self._places for step in place]

    @steps.setter
    def steps(self, steps: Sequence[Step]) -> None:
        # A place holds what has come of one step: often one, none once it is gone into another.
        self._places: list[list[Step]] = [[step] for step in steps]
        self._place = {step: k for k, step in enumerate(steps)}
        self._consumers: dict[Value, dict[Step, int]] = {}
        for step in steps:
            self._index(step, 1)

    def producers(self) -> dict[Value, Step]:
        """The step that makes each value."""
        return {v: s for s in self.steps for v in s.outputs}

    def consumers(self, value: Value) -> list[Step]:
        """The steps that take a value, once for every time they take it. Outputs of the program are not counted."""
        return [step for step, times in self._consumers.get(value, {}).items() for _ in range(times)]

    def sole_consumer(self, value: Value) -> Step | None:
        """The one step that takes a value, once, None where there are more or where the program returns it."""
        consumers = self._consumers.get(value, {})
        if len(consumers) != 1 or value in self.returned:
            return None
        ((step, times),) = consumers.items()
        return step if times == 1 else None

    def replace(self, old: Iterable[Step], new: Sequence[Step]) -> None:
        """Put `new` in the place of the last of `old`, and drop `old`."""
        gone = dict.fromkeys(old)
        kept = max(self._place[step] for step in gone)
        place = self._places[kept]
        after = max(k for k, step in enumerate(place) if step in gone) + 1
        place[after:after] = new
        for step in gone:
            self._places[self._place.pop(step)].remove(step)
            self._index(step, -1)
        for step in new:
            self._place[step] = kept
            self._index(step, 1)

    def _index(self, step: Step, times: int) -> None:
        for value in step.inputs:
            consumers = self._consumers.setdefault(value, {})
            consumers[step] = consumers.get(step, 0) + times
            if not consumers[step]:
                del consumers[step]


def walk_values(program: Program) -> Iterator[Value]:
    """Every value that is no constant, each once, in the order of its making."""
    seen: set[Value] = set()
    for value in (*program.inputs, *(v for s in program.steps for v in s.outputs)):
        if not value.is_constant and value not in seen:
            seen.add(value)
            yield value

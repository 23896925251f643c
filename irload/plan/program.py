"""Program: what a plan is made of before it is bound to memory: values, and the steps that make them, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.graph import Node


@dataclass(slots=True, eq=False)
class Value:
    """A tensor of static shape that flows between steps. A `constant` one has its array already.

    `channels_last` says how its memory lies: with the channel axis innermost (NHWC for a logical NCHW). Its views
    always have the logical shape, so no step needs to care, and those that do gain.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    constant: Array | None = None
    channels_last: bool = False
    name: str = ""
    used: bool = True
    """False for an output that no node of the graph takes."""

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        kind = "const " if self.constant is not None else ""
        return f"<{kind}{self.name} {self.dtype}{list(self.shape)}{' NXC' if self.channels_last else ''}>"


@dataclass(slots=True, eq=False)
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


@dataclass(slots=True, eq=False)
class Program:
    """Steps in an order in which they can run, the values the caller fills and those it reads."""

    steps: list[Step]
    inputs: list[Value]
    outputs: list[Value]
    notes: list[str] = field(default_factory=list[str])

    def producers(self) -> dict[Value, Step]:
        """The step that makes each value."""
        return {v: s for s in self.steps for v in s.outputs}

    def consumers(self) -> dict[Value, list[Step]]:
        """The steps that take each value, once for every time they take it. Outputs of the program are not counted."""
        found: dict[Value, list[Step]] = {}
        for step in self.steps:
            for value in step.inputs:
                found.setdefault(value, []).append(step)
        return found

    def sole_consumer(self, value: Value, consumers: dict[Value, list[Step]]) -> Step | None:
        """The one step that takes a value, None where there are more or where the program returns it."""
        takers = consumers.get(value, [])
        return takers[0] if len(takers) == 1 and value not in self.outputs else None

    def replace(self, old: Iterable[Step], new: Sequence[Step]) -> None:
        """Put `new` in the place of the last of `old`, and drop `old`."""
        gone = set(old)
        last = max(k for k, s in enumerate(self.steps) if s in gone)
        self.steps[last + 1 : last + 1] = new
        self.steps = [s for s in self.steps if s not in gone]


def walk_values(program: Program) -> Iterator[Value]:
    """Every value that is no constant, each once, in the order of its making."""
    seen: set[Value] = set()
    for value in (*program.inputs, *(v for s in program.steps for v in s.outputs)):
        if value.constant is None and value not in seen:
            seen.add(value)
            yield value

"""Program: values, and the steps that produce them, in execution order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from math import prod
from typing import Any, ClassVar, TypeVar

import numpy as np

from irload.core.tensor import Array
from irload.graph import Node, Output
from irload.plan.ir.constant import Constant
from irload.plan.ir.derivations import Derivation
from irload.plan.ir.expression import IDENTITY, Expression
from irload.plan.ir.strides import View
from irload.record import record


class PlanInvalid(AssertionError):
    """A plan violates its invariants: a bug in irload, never a fault of a file."""


@record(frozen=False, eq=False)
class Value:
    """A tensor of static shape, produced by one step and read by others, or a constant, which has a `source`."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    source: Constant | None = None
    name: str = ""
    used: bool = True
    """False for an output that no node of the graph reads."""
    origin: Output | None = None
    """The output of the graph with the same elements, or None for an intermediate value of a lowering or a pass."""
    repeated: Array | None = None
    """The element that a Broadcast of a constant repeats, for lowerings; None for other values."""

    @staticmethod
    def of(array: Array, name: str = "") -> Value:
        """Return a constant value."""
        return Value(array.shape, array.dtype, Constant.of(array), name=name)

    def like(self, shape: tuple[int, ...] | None = None) -> Value:
        """Return a new value of the same type and name, by default of the same shape."""
        return Value(self.shape if shape is None else shape, self.dtype, name=self.name)

    def by(self, how: Derivation) -> Value:
        """Return the constant that a derivation computes from this one."""
        assert self.source is not None
        source = self.source.by(how)
        return Value(source.shape, self.dtype, source, name=self.name)

    @property
    def is_constant(self) -> bool:
        """True if the values are known before the run. Does not read the file, whereas `constant` may."""
        return self.source is not None

    @property
    def constant(self) -> Array | None:
        """The values of a constant, or None for any other value."""
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


LONG_STEP = 10e9
"""Floating-point operations of a step above which time limits and Ctrl-C are checked while it runs."""


@record(frozen=False, eq=False)
class Step:
    """Base of all steps: inputs, outputs, and the nodes of the graph that the step implements.

    A subclass states the properties of its computation that hold on every back end: `check`, and the properties that
    differ from the defaults here.
    """

    prefers_channels_last: ClassVar[bool] = False
    """True for steps over spatial windows: if channels are last, rows of windows and of the result are contiguous."""
    adapts_layout: ClassVar[bool] = False
    """True if the outputs can be computed in any axis order, so that their readers choose it."""
    keeps_layout: ClassVar[bool] = False
    """True if the outputs are computed in the axis order of the inputs."""
    keeps_elements: ClassVar[bool] = False
    """True if the outputs consist of unchanged elements of the inputs, so that all have the same stored type."""

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
        """The name of the step in profiles and explanations: the types of its nodes."""
        return "+".join(dict.fromkeys(n.type for n in self.origin)) or type(self).__name__

    def check(self) -> None:
        """Raise PlanInvalid or ValueError unless numbers, shapes and types of inputs and outputs match the fields."""
        raise NotImplementedError

    @property
    def flops(self) -> int:
        """The number of multiplications and additions in sums of products; 0 for memory-bound steps."""
        return 0

    @property
    def nbytes(self) -> int:
        """The minimum number of bytes read and written."""
        return sum(v.nbytes for v in (*self.inputs, *self.outputs))

    @property
    def calculates(self) -> bool:
        """False for operations that return their inputs unchanged."""
        return True

    @property
    def multiplies(self) -> bool:
        """True if kernels may use BLAS, which also computes sums."""
        return not self.keeps_elements

    @property
    def has_effect(self) -> bool:
        """True if the step must run even if no other step reads its outputs."""
        return False

    @property
    def view(self) -> View | None:
        """The output as a view of the input, or None if it is computed."""
        return None

    @property
    def elementwise_part(self) -> Expression:
        """The expression that the step evaluates for each element; the identity if there is none."""
        return IDENTITY

    @property
    def needs_channels_last(self) -> bool:
        """True if the step requires channels-last data, so that data in another axis order is copied first."""
        return False

    @property
    def layout_sources(self) -> Sequence[Value]:
        """The inputs whose axis order the outputs keep."""
        return self.inputs if self.keeps_layout else ()


StepT = TypeVar("StepT", bound=Step)


Producers = dict[Value, Step]
"""The step that produces each value."""


class Program:
    """Steps in execution order, the inputs, which the caller fills, and the outputs, which the caller reads.

    Steps are replaced, never modified, and consumers are indexed, so the time of a rewrite does not depend on the
    length of the program.
    """

    def __init__(self, steps: Sequence[Step], inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.returned = frozenset(outputs)
        """`outputs` as a set."""
        self.steps = list(steps)

    @property
    def steps(self) -> list[Step]:
        """The steps in order, a new list at each call."""
        return [step for slot in self._slots for step in slot]

    @steps.setter
    def steps(self, steps: Sequence[Step]) -> None:
        # Each slot holds the replacements of one original step: usually one, none after it was fused into another.
        self._slots: list[list[Step]] = [[step] for step in steps]
        self._slot = {step: k for k, step in enumerate(steps)}
        self._consumers: dict[Value, dict[Step, int]] = {}
        for step in steps:
            self._index(step, 1)

    def producers(self) -> Producers:
        """Return the step that produces each value."""
        return {v: s for s in self.steps for v in s.outputs}

    def consumers(self, value: Value) -> list[Step]:
        """Return the steps that read a value, once per use. Outputs of the program are not counted."""
        return [step for step, times in self._consumers.get(value, {}).items() for _ in range(times)]

    def sole_consumer(self, value: Value) -> Step | None:
        """Return the step that reads a value; None unless it is read exactly once, and not returned by the program."""
        consumers = self._consumers.get(value, {})
        if len(consumers) != 1 or value in self.returned:
            return None
        ((step, times),) = consumers.items()
        return step if times == 1 else None

    def replace(self, old: Iterable[Step], new: Sequence[Step]) -> None:
        """Insert `new` at the position of the last of `old`, and remove `old`."""
        gone = dict.fromkeys(old)
        kept = max(self._slot[step] for step in gone)
        slot = self._slots[kept]
        after = max(k for k, step in enumerate(slot) if step in gone) + 1
        slot[after:after] = new
        for step in gone:
            self._slots[self._slot.pop(step)].remove(step)
            self._index(step, -1)
        for step in new:
            self._slot[step] = kept
            self._index(step, 1)

    def rewrite(self, kind: type[StepT], steps_for: Callable[[StepT], Sequence[Step] | None]) -> None:
        """Replace each step of a class by the steps that a function returns for it. None keeps the step."""
        for step in self.steps:
            new = steps_for(step) if isinstance(step, kind) else None
            if new is not None:
                self.replace([step], new)

    def _index(self, step: Step, times: int) -> None:
        for value in step.inputs:
            consumers = self._consumers.setdefault(value, {})
            consumers[step] = consumers.get(step, 0) + times
            if not consumers[step]:
                del consumers[step]


def origin_of(steps: Iterable[Step]) -> tuple[Node, ...]:
    """Return the nodes that these steps implement, each once."""
    return tuple(dict.fromkeys(node for step in steps for node in step.origin))


def walk_values(program: Program) -> Iterator[Value]:
    """Return every value that is not constant, once, in order of production."""
    seen: set[Value] = set()
    for value in (*program.inputs, *(v for s in program.steps for v in s.outputs)):
        if not value.is_constant and value not in seen:
            seen.add(value)
            yield value

"""Binding: a program and its storage become a table of calls on fixed views of memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.packing import PackedWeights, WeightOperand
from irload.plan.backends.numpy.tuning import Phases, Tuner
from irload.plan.ir.program import Step, Value
from irload.plan.memory.planner import Storage


@dataclass(frozen=True, slots=True)
class Bound:
    """One step ready to run: its phases, and the name of the kernel that was chosen."""

    step: Step
    phases: Phases
    kernel: str


class RunCell:
    """Holds the inference under way, for the operations that ask their context for something."""

    def __init__(self, file: str | None = None) -> None:
        self.file = file
        self.context: Any = None

    def check(self) -> None:
        """Raise LimitExceeded when the inference has taken too long."""
        if self.context is not None:
            self.context.deadline.check()


class Binder:
    """Chooses a kernel for each step, by rule on shapes and attributes."""

    def __init__(
        self,
        storage: Storage,
        threads: int,
        packs: PackedWeights,
        run: RunCell,
        *,
        precise: bool = False,
        tuner: Tuner | None = None,
        run_phases: Callable[[Phases], None] | None = None,
    ) -> None:
        self.storage = storage
        self.threads = threads
        self.packs = packs
        self.direct: list[Array] = []
        """The constants that kernels take as they are …"""
        self.held: list[Array] = []
        """… and those laid out anew."""
        self.scratch = Scratch()
        self.run = run
        self.precise = precise
        self._tuner = tuner
        self._run_phases = run_phases

    def bind(self, step: Step) -> Bound | None:
        """The step's calls, None where its output is a view that needs none."""
        from irload.plan.backends.numpy import selection

        assert selection
        self.scratch.reset()
        kernel, phases = _table[type(step)](step, self)
        phases = [[part for part in phase if part] for phase in phases]
        phases = [phase for phase in phases if phase]
        return Bound(step, phases, kernel) if phases else None

    def choose(self, step: Step, ways: Mapping[str, Callable[[], Phases]]) -> tuple[str, Phases]:
        """A kernel's name and its phases: the first of the ways, which is the rule's, or the fastest one by tuning.

        To be asked before anything else takes working memory.
        """
        name = next(iter(ways))
        if self._tuner is not None and self._run_phases is not None and len(ways) > 1:
            name = self._tuner.told(step, self.threads) or ""
            if name not in ways:
                name = self._tuner.learn(step, self.threads, self._tried(ways), self._run_phases)
        return name, ways[name]()

    def _tried(self, ways: Mapping[str, Callable[[], Phases]]) -> dict[str, Callable[[], Phases]]:
        """The same ways, leaving nothing behind but what the last one tried needs while it is tried."""

        def tried(make: Callable[[], Phases]) -> Phases:
            direct, held = len(self.direct), len(self.held)
            self.scratch.reset()
            phases = make()
            self.scratch.reset()
            del self.direct[direct:], self.held[held:]
            return phases

        return {name: partial(tried, make) for name, make in ways.items()}

    def view(self, value: Value) -> Array:
        """The array of a value."""
        array = self.storage.view(value)
        if value.is_constant:
            self.direct.append(array)
        return array

    def weights(self, value: Value) -> WeightOperand:
        """The constant of a value, for a kernel to lay out as it likes."""
        assert value.source is not None
        return WeightOperand(value.source, self.packs, self.direct, self.held)


Bind = Callable[[Any, Binder], tuple[str, Phases]]
"""Gives the name of the kernel chosen for a step, and its phases."""

_table: dict[type[Step], Bind] = {}


def binds(*types: type[Step]) -> Callable[[Bind], Bind]:
    """Register the binding of steps of these types: `@binds(Elementwise)`."""

    def register(function: Bind) -> Bind:
        _table.update(dict.fromkeys(types, function))
        return function

    return register

"""What selects kernels work with: memory, working memory, weights and the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.epilogue import Epilogue, Operand
from irload.plan.backends.numpy.kernels.packing import PackedWeights, WeightOperand
from irload.plan.backends.numpy.tuning import Phases, Tuner
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import WithEpilogue
from irload.plan.memory.memory import Memory

Selected = tuple[str, Phases]
"""The name of a kernel, and what it does."""


class RunCell:
    """Holds the inference under way, for the operations that ask their context for something."""

    def __init__(self, file: str | None = None) -> None:
        self.file = file
        self.context: Any = None

    def check(self) -> None:
        """Raise LimitExceeded when the inference has taken too long."""
        if self.context is not None:
            self.context.deadline.check()


class Selector:
    """Gives kernels the arrays of a step, and chooses where several would do."""

    def __init__(
        self,
        memory: Memory,
        options: Options,
        packs: PackedWeights,
        *,
        tuner: Tuner | None = None,
        run_phases: Callable[[Phases], None] | None = None,
    ) -> None:
        self.memory = memory
        self.threads = options.threads
        self.precise = options.precise
        self.packs = packs
        self.direct: list[Array] = []
        """The constants that kernels take as they are …"""
        self.held: list[Array] = []
        """… and those that are packed."""
        self.scratch = Scratch()
        self.cell = RunCell(options.file)
        self._tuner = tuner
        self._run_phases = run_phases

    def choose(self, step: Step, kernels: Mapping[str, Callable[[], Phases]]) -> Selected:
        """A kernel's name and its phases: the first one, which is the rule's, or the fastest one by tuning.

        To be asked before anything else takes working memory.
        """
        name = next(iter(kernels))
        if self._tuner is not None and self._run_phases is not None and len(kernels) > 1:
            name = self._tuner.find(step, self.memory, self.threads) or ""
            if name not in kernels:
                name = self._tuner.learn(step, self.memory, self.threads, self._tried(kernels), self._run_phases)
        return name, kernels[name]()

    def _tried(self, kernels: Mapping[str, Callable[[], Phases]]) -> dict[str, Callable[[], Phases]]:
        """The same kernels, leaving nothing behind but what the last one tried needs while it is tried."""

        def tried(make: Callable[[], Phases]) -> Phases:
            direct, held = len(self.direct), len(self.held)
            self.scratch.reset()
            phases = make()
            self.scratch.reset()
            del self.direct[direct:], self.held[held:]
            return phases

        return {name: partial(tried, make) for name, make in kernels.items()}

    def array(self, value: Value) -> Array:
        """The array of a value."""
        array = self.memory.array(value)
        if value.is_constant:
            self.direct.append(array)
        return array

    def epilogue(self, step: WithEpilogue) -> Epilogue:
        """The epilogue of a step with its operands, which broadcast to the output."""
        return Epilogue(step.epilogue, tuple(Operand(self.array(v), v.is_constant) for v in step.operands))

    def weights(self, value: Value) -> WeightOperand:
        """The constant of a value, for a kernel to pack as it likes."""
        assert value.source is not None
        return WeightOperand(value.source, self.packs, self.direct, self.held)

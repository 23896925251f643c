"""The context of kernel selection: memory, working memory, weights and tuning."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from irload.core.tensor import Array
from irload.options import Options
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.compressed import CompressedMatrix
from irload.plan.backends.numpy.kernels.epilogue import Epilogue, EpilogueOperand
from irload.plan.backends.numpy.kernels.packing import PackedWeights, WeightOperand
from irload.plan.backends.numpy.tuning import Tuner
from irload.plan.ir.compressed import compressed
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import WithEpilogue
from irload.plan.memory.memory import Memory

Selected = tuple[str, Phases]
"""A kernel's name and its phases."""


class RunCell:
    """A reference to the current inference, for operations that need a context."""

    def __init__(self, file: str | None = None) -> None:
        self.file = file
        self.context: Any = None

    @contextmanager
    def during(self, context: Any) -> Generator[None]:
        """Hold the reference only during the inference: a permanent reference would be in a cycle with the model."""
        self.context = context
        try:
            yield
        finally:
            self.context = None

    def check(self) -> None:
        """Raise LimitExceeded if the inference has exceeded its time limit."""
        if self.context is not None:
            self.context.deadline.check()


class NumpySelector:
    """Provides kernels with the arrays of a step, and chooses between alternatives."""

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
        self._variables = options.variables
        self.packs = packs
        self.direct: list[Array] = []
        """Constants that kernels read unpacked."""
        self.held: list[Array] = []
        """Packed constants that kernels read."""
        self.scratch = Scratch(options.threads)
        self.cell = RunCell(options.file)
        self._tuner = tuner
        self._run_phases = run_phases

    def choose(self, step: Step, kernels: Mapping[str, Callable[[], Phases]]) -> Selected:
        """Return the name and phases of a kernel: the first one, preferred by rule, or the fastest by tuning.

        Must be called before any working memory is reserved.
        """
        name = next(iter(kernels))
        if self._tuner is not None and self._run_phases is not None and len(kernels) > 1:
            name = self._tuner.find(step, self.memory, self.threads) or ""
            if name not in kernels:
                name = self._tuner.learn(step, self.memory, self.threads, self._trials(kernels), self._run_phases)
        return name, kernels[name]()

    def _trials(self, kernels: Mapping[str, Callable[[], Phases]]) -> dict[str, Callable[[], Phases]]:
        """Return functions that create the phases of each kernel for timing, and keep neither scratch nor constants."""

        def trial(make: Callable[[], Phases]) -> Phases:
            direct, held = len(self.direct), len(self.held)
            self.scratch.reset()
            phases = make()
            self.scratch.reset()
            del self.direct[direct:], self.held[held:]
            return phases

        return {name: partial(trial, make) for name, make in kernels.items()}

    def array(self, value: Value) -> Array:
        """Return the array of a value."""
        array = self.memory.array(value)
        if value.is_constant:
            self.direct.append(array)
        return array

    def epilogue(self, step: WithEpilogue) -> Epilogue:
        """Return the epilogue of a step with its operands, which broadcast to the output."""
        return Epilogue(step.epilogue, tuple(EpilogueOperand(self.array(v), v.is_constant) for v in step.operands))

    def compressed(self, value: Value, axis: int, *, multiplied: bool = False) -> CompressedMatrix | None:
        """Return the compressed form of constant weights that are summed along an axis, None for other weights.

        `multiplied`: None also for 16-bit floats in models without variables. They are widened once, during planning,
        because widening them in each inference doubles the time of a product.
        """
        stored = compressed(value.source)
        widened = stored is not None and multiplied and stored.is_short and not self._variables
        matrix = None if stored is None or widened else CompressedMatrix.of(stored, axis)
        if matrix is not None:
            self.held += matrix.arrays
        return matrix

    def weights(self, value: Value) -> WeightOperand:
        """Return the constant of a value, for a kernel to pack."""
        assert value.source is not None
        return WeightOperand(value.source, self.packs, self.direct, self.held)

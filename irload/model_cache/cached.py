"""A compiled model whose plan was kept: it runs without its graph, which is read once something else is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irload.core.tensor import Array, TensorType
from irload.differences import refusal
from irload.errors import DeclaredDiffers
from irload.graph import Port
from irload.inputs import Binding
from irload.model import Model, find_port
from irload.model_cache.file import Plan
from irload.model_cache.ports import differences_of, inputs_of, outputs_of
from irload.model_cache.replica import Replica
from irload.plan.backends.base import Options
from irload.plan.backends.llvm.image import loaded
from irload.plan.backends.llvm.target import Target
from irload.plan.interpreter import Run
from irload.run import CompiledModel


class CachedModel(CompiledModel):
    """As CompiledModel, and raises what it raises. `read` gives the model, or raises where its files have changed.

    What inferences do not need is that of a CompiledModel of the model, which is read for it. Inputs and outputs are
    ports of layers of their own; those of the model that was read mean the same.
    """

    def __init__(
        self, plan: Plan, options: Options, target: Target, read: Callable[[], Model], *, strict: bool
    ) -> None:
        self._differences = differences_of(plan.model, options.file)
        if strict and self._differences:
            raise refusal(self._differences)
        self.inputs = inputs_of(plan.model)
        self.outputs = outputs_of(plan.model)
        self.threads = options.threads
        self.limits = options.limits
        self.optimize = True
        self._bind = Binding(self.inputs, wide=True)
        self._own = None
        self._options = options
        self._strict = strict
        self._plan = plan
        self._target = target
        self._codes = loaded(plan.image)
        self._read = read
        self._whole: CompiledModel | None = None
        self._idle = [self._replica()]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_idle" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if self._whole is None:
            made = CompiledModel.__new__(CompiledModel)
            made._set_up(self._read(), self._options, optimize=True, strict=self._strict)
            self._whole = self._whole or made
        return getattr(self._whole, name)

    @property
    def differences(self) -> list[DeclaredDiffers]:
        """The ports that declare what was not inferred."""
        return list(self._differences)

    @property
    def warnings(self) -> list[str]:
        """The warnings of the model."""
        return list(self._plan.model["warnings"])

    def input(self, key: str | int | Port = 0) -> Port:
        """An input by position or name."""
        return find_port(self.inputs, key, "input")

    def output(self, key: str | int | Port = 0) -> Port:
        """An output by position or name."""
        return find_port(self.outputs, key, "output")

    def prepare(self, inputs: Any = None) -> None:
        """Check the inputs, if any: the plan is there. Raises InputInvalid."""
        if inputs is not None:
            self._bound(inputs)

    def execute(self, run: Run, given: Sequence[TensorType], arrays: Sequence[Array]) -> tuple[Array, ...]:
        """The results of the model's graph, by a replica of the plan that nobody else is using."""
        try:
            replica = self._idle.pop()
        except IndexError:
            replica = self._replica()
        try:
            results = replica.run(arrays, run)
        except Exception:
            self._idle.append(replica)
            raise  # what only interrupts might have left a thread that writes to the replica's memory
        self._idle.append(replica)
        return results

    def _replica(self) -> Replica:
        return Replica(self._plan, self._codes, self._target, self._options)

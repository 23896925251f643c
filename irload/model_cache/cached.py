"""A compiled model with a cached plan, which runs without the graph. Attributes that need the graph read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irload.core.tensor import Array, TensorType
from irload.errors import DeclaredDiffers
from irload.graph import Port
from irload.model import find_port
from irload.model_cache.file import Plan
from irload.model_cache.ports import Document, differences_of, inputs_of, outputs_of, warnings_of
from irload.model_cache.replica import Replicas
from irload.options import Options
from irload.plan.backends.compiled import CompiledBackend
from irload.plan.interpreter import InterpreterRun
from irload.plan.variables import Variables
from irload.runtime.compiled_model import CompiledModel
from irload.runtime.inputs import InputBinding
from irload.validation.differences import refusal

_OF_WHOLE = frozenset(
    [
        *("model", "_accumulations", "_by_runs", "_first_store", "_folding", "_graphs", "_latest", "_lock"),
        *("_operations", "_planned", "_pools", "_reads", "_schedules", "_shared", "_tails", "_traced"),
    ]
)
"""Attributes of a CompiledModel that require its graph. For any other missing attribute, the graph is not read."""


class Cached(CompiledModel):
    """Base of compiled models that run cached plans, with the results and errors of a CompiledModel.

    Attributes that inference does not need are forwarded to a complete CompiledModel, which `read` creates on first
    use; it raises ReadError if the model's files have changed. `inputs` and `outputs` are ports of placeholder layers,
    with the names and types of the model's ports.
    """

    def _describe(self, document: Document, options: Options, read: Callable[[], CompiledModel]) -> None:
        """Set the attributes that do not depend on a plan. Raises DeclaredDiffers as `CacheEntry.find` does."""
        self._differences = differences_of(document, options.file)
        if options.strict and self._differences:
            raise refusal(self._differences)
        self.inputs = inputs_of(document)
        self.outputs = outputs_of(document)
        self.threads = options.threads
        self.limits = options.limits
        self.optimize = True
        self._bind = InputBinding(self.inputs, wide=True)
        self._variables = Variables()
        self._options = options
        self._document = document
        self._read = read
        self._whole: CompiledModel | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_WHOLE or "_whole" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._completed(), name)

    def _completed(self) -> CompiledModel:
        """Return the complete CompiledModel, which is created on first use."""
        if self._whole is None:
            compiled = self._read()
            self._whole = self._whole or compiled
        return self._whole

    @property
    def from_cache(self) -> bool:
        """True unless the model has been read."""
        return self._whole is None

    @property
    def differences(self) -> list[DeclaredDiffers]:
        """The ports whose declaration differs from the inferred type."""
        return list(self._differences)

    @property
    def warnings(self) -> list[str]:
        """The warnings of the model."""
        return warnings_of(self._document, self._options.file)

    def input(self, key: str | int | Port = 0) -> Port:
        """Return an input by position or name."""
        return find_port(self.inputs, key, "input")

    def output(self, key: str | int | Port = 0) -> Port:
        """Return an output by position or name."""
        return find_port(self.outputs, key, "output")


class CachedModel(Cached):
    """A compiled model with a cached plan for its static shapes."""

    def __init__(
        self, plan: Plan, options: Options, backend: CompiledBackend, read: Callable[[], CompiledModel]
    ) -> None:
        self._describe(plan.model, options, read)
        self._replicas = Replicas(plan, options, backend)

    def prepare(self, inputs: Any = None) -> None:
        """Check the inputs, if any. The plan already exists. Raises InputInvalid."""
        if inputs is not None:
            self._bound(inputs)

    def execute(self, run: InterpreterRun, given: Sequence[TensorType], arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Run the model's graph on an unused replica of the plan."""
        return self._replicas.run(arrays, run)

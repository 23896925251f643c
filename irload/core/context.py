"""The context that inference or execution passes to operations with control flow, state or random numbers.

An operation receives it as a keyword-only `context` parameter of `infer` or `compute`. Control flow runs its bodies
through it; state reads and writes variables through it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from irload.core.subgraph import Accumulator, Body, Subgraph
from irload.core.tensor import Array, TensorType
from irload.safety.limits import Limits

RunBody = Callable[[Sequence[Array]], tuple[Array, ...]]
"""Takes one array per parameter of a body, and returns its results."""


class InferContext(Protocol):
    """The context of `infer`."""

    @property
    def limits(self) -> Limits:
        """The limits of the model."""
        ...

    def at_run(self) -> bool:
        """Return True if the inputs have the shapes of a run, False if they have the shapes of the model."""
        ...

    def infer_body(self, body: Body, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """The types of the body's results, given one type for each of its parameters."""
        ...

    def variable(self, name: str) -> TensorType | None:
        """Return the type that a ReadValue declared for the variable, None before it is inferred."""
        ...

    def declare_variable(self, name: str, tensor: TensorType) -> None:
        """Record the type that a ReadValue declares for its variable."""
        ...


class RunContext(Protocol):
    """The context of `compute`."""

    @property
    def limits(self) -> Limits:
        """The limits of the model."""
        ...

    @property
    def outputs(self) -> Sequence[TensorType]:
        """The inferred types of the outputs that `compute` returns."""
        ...

    def run_body(self, body: Body, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The body's results, given one array for each of its parameters."""
        ...

    def iterations(self, loop: Subgraph, carried: Collection[int]) -> AbstractContextManager[RunBody]:
        """Return a context manager for one run of a loop. Its value is a function that runs the body once.

        `carried`: the positions of results that are valid only until the next call.
        """
        ...

    def accumulators(self, loop: Subgraph) -> Sequence[Accumulator]:
        """The accumulators of a loop in this run: its body returns only the part that an iteration adds to them."""
        ...

    def spend_iteration(self) -> None:
        """Count one iteration of a loop. Raises LimitExceeded beyond the limit."""
        ...

    def read_variable(self, name: str) -> Array | None:
        """The variable's value, or None if it is not set (first inference, or after a reset)."""
        ...

    def write_variable(self, name: str, value: Array) -> None:
        """Set the value of the variable for the next inference."""
        ...

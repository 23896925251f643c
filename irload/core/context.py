"""The context of the few operations that are more than a function: what inference or execution supplies to them.

An operation gets a context by naming a keyword-only `context` parameter in `infer` or `compute`. Control flow runs its
bodies through it, state reads and writes variables through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from irload.core.subgraph import Body
from irload.core.tensor import Array, TensorType
from irload.safety import Limits


class InferContext(Protocol):
    """What `infer` may ask for."""

    @property
    def limits(self) -> Limits:
        """The limits of the model."""
        ...

    def infer_body(self, body: Body, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """The types of the body's results, given one type for each of its parameters."""
        ...

    def variable(self, name: str) -> TensorType | None:
        """The type of the variable as its ReadValue declared it, None before that."""
        ...

    def declare_variable(self, name: str, tensor: TensorType) -> None:
        """Record what a ReadValue says of its variable."""
        ...


class RunContext(Protocol):
    """What `compute` may ask for."""

    @property
    def limits(self) -> Limits:
        """The limits of the model."""
        ...

    @property
    def outputs(self) -> Sequence[TensorType]:
        """The inferred types of the outputs that are about to be computed."""
        ...

    def run_body(self, body: Body, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The body's results, given one array for each of its parameters."""
        ...

    def spend_iteration(self) -> None:
        """Count one iteration of a loop. Raises LimitExceeded when the budget is used up."""
        ...

    def read_variable(self, name: str) -> Array | None:
        """The variable's value, or None while it has none (first inference, or after a reset)."""
        ...

    def write_variable(self, name: str, value: Array) -> None:
        """Give the variable its value for the next inference."""
        ...

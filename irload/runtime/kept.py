"""Stores plans of models with dynamic shapes for other processes, and restores traced plans without planning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from irload.core.tensor import Array, TensorType
from irload.graph import Node
from irload.model import Model
from irload.options import Options
from irload.plan.backends.base import SharedData
from irload.plan.backends.compiled import NotStorable
from irload.plan.folding import Folding
from irload.plan.ir.constant import Constant

if TYPE_CHECKING:
    from irload.plan.executor import Executor
    from irload.plan.traced.template import Template

__all__ = ["KeptPlans", "ModelPlans", "PlanStore", "restored", "static_name"]

DAMAGED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that decoding raises for a document that does not describe a plan."""


class PlanStore(Protocol):
    """A store of JSON documents with arrays, by name, for other processes."""

    def find(self, name: str) -> tuple[Mapping[str, Any], Array] | None:
        """Return a document and the bytes of its arrays; None if it is missing or not trusted. Raises LimitExceeded."""
        ...

    def keep(self, name: str, document: Mapping[str, Any], arrays: Sequence[bytes | memoryview]) -> None:
        """Store a document and its arrays. Errors of the file system are ignored."""
        ...

    def keep_static(self, name: str, plan: Executor, model: Model, largest: int) -> None:
        """Store the plan of the entire model for one shape, with at most `largest` bytes of constants."""
        ...


class KeptPlans(Protocol):
    """The stored traced plans of a model."""

    def find(self, name: str, options: Options, shared: SharedData) -> Template | None:
        """Restore the plan with this name; None if it is not stored."""
        ...

    def keep(self, name: str, template: Template) -> None:
        """Store a plan."""
        ...


def static_name(given: Sequence[TensorType]) -> str:
    """Return the name of the plan for inputs of these static types."""
    return repr(("static", [(t.element.name, t.shape.static) for t in given]))


def restored(
    stored: tuple[Mapping[str, Any], Array] | None, source: Any, options: Options, shared: SharedData
) -> Template | None:
    """Return the plan that a document describes; None if the document is damaged."""
    if stored is None:
        return None
    from irload.plan.traced.storing import restored_program
    from irload.plan.traced.template import Template

    try:
        return Template(restored_program(*stored, source, options), options, shared)
    except DAMAGED:
        return None


class ModelPlans:
    """`KeptPlans` of a model that was read from a file, valid until the model is edited.

    `largest`: the maximum bytes of the constants of one plan.
    """

    def __init__(self, store: PlanStore, largest: int, model: Model, folding: Folding) -> None:
        self.folding = folding
        self._store = store
        self._largest = largest
        self._model = model
        self._read = _graph(model)

    def find(self, name: str, options: Options, shared: SharedData) -> Template | None:
        """Restore the plan with this name; None if it is not stored, or if the model was edited."""
        return restored(self._store.find(name), self, options, shared) if self._is_unchanged() else None

    def keep(self, name: str, template: Template) -> None:
        """Store a plan, unless one of its objects cannot be encoded, or the model was edited."""
        from irload.plan.traced.storing import stored_program

        if self._is_unchanged():
            try:
                stored = stored_program(template.traced, self._model.nodes, self.folding, self._largest)
            except (NotStorable, *DAMAGED):
                return
            self._store.keep(name, stored.encoded, stored.arrays)

    def keep_static(self, given: Sequence[TensorType], plan: Executor) -> None:
        """Store the plan for inputs of these types, unless the model was edited."""
        if self._is_unchanged():
            self._store.keep_static(static_name(given), plan, self._model, self._largest)

    def node(self, number: int) -> Node:
        """Return the layer with this number."""
        return self._model.nodes[number]

    def constant(self, node: Node, tensor: TensorType, offset: int, size: int) -> Constant:
        """Return the constant of a Const."""
        return self.folding.file(node)

    def _is_unchanged(self) -> bool:
        """False if the model was edited after it was read."""
        return _graph(self._model) == self._read


def _graph(model: Model) -> list[tuple[object, ...]]:
    """Return the operations and edges of a model in a form that can be compared; nodes are compared by identity."""
    return [(node, node.op, *node.inputs) for node in model.nodes]

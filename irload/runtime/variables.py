"""The variables of an infer request: the state of ReadValue and Assign between inferences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from irload.core.element import dynamic, element_of_dtype
from irload.core.shape import shape_of
from irload.core.tensor import Array, TensorType
from irload.graph import Node, Port
from irload.model import Model
from irload.plan.schedule import State
from irload.plan.variables import Variables
from irload.runtime.inputs import bind

__all__ = ["VariableState"]


def read_nodes(model: Model) -> list[Node]:
    """Return the ReadValue nodes whose values are known before an inference: no body uses their variables."""
    inner = {n.op.attributes.get("variable_id") for graph in model.walk() if graph is not model for n in graph.nodes}
    reads = [node for node in model.nodes if node.type == "ReadValue" and node.reachable]
    return [node for node in reads if node.op.attributes["variable_id"] not in inner]


def state_of(reads: Sequence[Node], variables: Mapping[str, Array]) -> tuple[State | None, list[Array]]:
    """Return the types of the variables (None if there are no `reads`), and the values of variables that are set."""
    values = [variables.get(node.op.attributes["variable_id"]) for node in reads]
    state = {n: None if v is None else _type_of(n, v) for n, v in zip(reads, values, strict=True)}
    return state or None, [v for v in values if v is not None]


def _type_of(node: Node, value: Array) -> TensorType:
    """Return the type of the value that a ReadValue reads."""
    element = node.outputs[0].type.element
    return TensorType(element_of_dtype(value.dtype) if element is dynamic else element, shape_of(value.shape))


class HasVariables(Protocol):
    """The part of an infer request that VariableState uses."""

    variables: Variables


class VariableState:
    """One variable of a request. `name`: its variable_id; `state`: its value, which can be set; `reset` deletes it."""

    def __init__(self, request: HasVariables, node: Node) -> None:
        self._request = request
        self._node = node
        self.name: str = node.op.attributes["variable_id"]

    @property
    def state(self) -> Array | None:
        """A copy of the value; None before the first assignment.

        Setting it raises InputInvalid for a value that does not fit the type and shape of the variable.
        """
        value = self._request.variables.get(self.name)
        return None if value is None else np.array(value, order="C")

    @state.setter
    def state(self, value: Any) -> None:
        port = Port(self._node, self._node.outputs[0], 0, frozenset({self.name}))
        self._request.variables[self.name] = np.array(bind([port], {self.name: value})[0])

    def reset(self) -> None:
        """Delete the value; the next inference starts from the initial one."""
        self._request.variables.pop(self.name, None)

"""The variables of a request: what ReadValue and Assign keep between inferences."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from irload.core.tensor import Array
from irload.graph import Node, Port
from irload.inputs import bind

__all__ = ["VariableState"]


class HasVariables(Protocol):
    """A request, as far as its variables go."""

    variables: dict[str, Array]


class VariableState:
    """One variable of a request: `name`, `state` (its value; assign to set it) and `reset`."""

    def __init__(self, request: HasVariables, node: Node) -> None:
        self._request = request
        self._node = node
        self.name: str = node.op.attributes["variable_id"]

    @property
    def state(self) -> Array | None:
        """The value, or None while the variable has none."""
        return self._request.variables.get(self.name)

    @state.setter
    def state(self, value: Any) -> None:
        port = Port(self._node, self._node.outputs[0], 0, frozenset({self.name}))
        self._request.variables[self.name] = np.array(bind([port], {self.name: value})[0])

    def reset(self) -> None:
        """Forget the value; the next inference starts from the initial one."""
        self._request.variables.pop(self.name, None)

"""VariableState: the value of one variable of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from irload.openvino.errors import raising
from irload.openvino.tensors import Tensor
from irload.runtime import variables

if TYPE_CHECKING:
    from irload.runtime.compiled_model import InferRequest

__all__ = ["VariableState"]


class VariableState:
    """One variable: `name`, `state` (a Tensor; assign to set it) and `reset`."""

    def __init__(self, state: variables.VariableState, request: InferRequest) -> None:
        self._state = state
        self._request = request

    @property
    def name(self) -> str:
        """The id of the variable."""
        return self._state.name

    @property
    def state(self) -> Tensor:
        """A copy of the value; before the first inference zeros, with dynamic axes of their minimal size."""
        declared = self._state._node.outputs[0].type  # noqa: SLF001
        value = self._state.state
        if value is None:
            value = np.zeros(
                [d.lo for d in declared.shape] if declared.rank is not None else [], declared.element.dtype
            )
        return Tensor._from_array(value, declared.element)  # noqa: SLF001

    @state.setter
    def state(self, tensor: Tensor) -> None:
        self._assign(tensor)

    @raising
    def _assign(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"the state of a variable is a Tensor, found {type(tensor).__name__}")
        self._state.state = tensor._value()  # noqa: SLF001

    def reset(self) -> None:
        """Reset the variable to its initial value."""
        self._state.reset()

    def __repr__(self) -> str:
        return f"<VariableState: {self.name}>"

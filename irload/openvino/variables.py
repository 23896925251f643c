"""Variables of models with state, as the graph declares them."""

from __future__ import annotations

from typing import Any

from irload.core.tensor import TensorType
from irload.openvino.dimensions import PartialShape
from irload.openvino.types import Type, type_of

__all__ = ["Variable", "VariableInfo"]


class VariableInfo:
    """Id, type and shape of a variable."""

    def __init__(self) -> None:
        self.variable_id = ""
        self.data_type = Type.dynamic
        self._shape = PartialShape.dynamic()

    @property
    def data_shape(self) -> PartialShape:
        """The shape; assign to change it."""
        return self._shape

    @data_shape.setter
    def data_shape(self, shape: Any) -> None:
        self._shape = PartialShape(shape)

    @staticmethod
    def _from_type(name: str, tensor: TensorType) -> VariableInfo:
        info = VariableInfo()
        info.variable_id, info.data_type = name, type_of(tensor.element)
        info._shape = PartialShape._from_dims(tensor.shape)  # noqa: SLF001
        return info

    def __repr__(self) -> str:
        return f"<VariableInfo: '{self.variable_id}' {self.data_type.type_name}{self._shape}>"


class Variable:
    """A variable, which ReadValue and Assign nodes of its id read and assign."""

    def __init__(self, info: VariableInfo) -> None:
        self.info = info

    def get_info(self) -> VariableInfo:
        """Id, type and shape."""
        return self.info

    def update(self, variable_info: VariableInfo) -> None:
        """Replace id, type and shape."""
        self.info = variable_info

    def __repr__(self) -> str:
        return f"<Variable: {self.info!r}>"

"""A constant whose values a function computes when the model is saved or run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from irload import graph
from irload.openvino import authoring
from irload.openvino.custom import Op
from irload.openvino.errors import OpenVINOError
from irload.openvino.tensors import Tensor
from irload.openvino.types import element_of
from irload.openvino.vectors import Shape

__all__ = ["PostponedConstant", "make_postponed_constant"]


class PostponedConstant(Op):
    """A constant that takes no memory: `maker()` returns its tensor. It is saved as a Const."""

    def __init__(self, element_type: Any, shape: Any, maker: Callable[[], Tensor], name: str | None = None) -> None:
        super().__init__(self)
        self.get_rt_info()["postponed_constant"] = True
        self._type_of_values, self._shape_of_values, self._maker = element_type, Shape(shape), maker
        if name is not None:
            self.friendly_name = name
        self.constructor_validate_and_infer_types()

    def validate_and_infer_types(self) -> None:
        """Declare the output."""
        self.set_output_type(0, self._type_of_values, self._shape_of_values)

    def evaluate(self, output_values: Any, input_values: Sequence[Any], context: Any = None) -> bool:
        """Return the tensor of the maker as the output."""
        output_values[0] = self._values()
        return True

    def constant(self) -> graph.Node:
        """A constant of the values."""
        values = self._values()
        return authoring.constant(values._value(), element_of(values.element_type))  # noqa: SLF001

    def _values(self) -> Tensor:
        tensor, port = self._maker(), self.output(0)
        if not isinstance(tensor, Tensor):
            raise TypeError(f"the maker of a postponed constant returned {type(tensor).__name__}, not a Tensor")
        if tensor.element_type != port.element_type or tensor.size != prod(port.shape):
            raise OpenVINOError(f"the maker of {self.friendly_name} returned {tensor!r}, expected {port!r}")
        values = Tensor(tensor)
        values.shape = port.shape
        return values


def make_postponed_constant(
    element_type: Any, shape: Any, maker: Callable[[], Tensor], name: str | None = None
) -> PostponedConstant:
    """A constant of this type and shape, whose tensor `maker()` returns when it is needed."""
    return PostponedConstant(element_type, shape, maker, name)

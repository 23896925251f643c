"""`openvino.experimental`: bounds of values, and types of tensors that operations written in Python set."""

from __future__ import annotations

from dataclasses import replace

from irload.core.shape import Shape as Dims
from irload.openvino import adapters
from irload.openvino.dimensions import PartialShape, dims_of
from irload.openvino.ports import DescriptorTensor, Output
from irload.openvino.tensors import Tensor
from irload.openvino.types import Type, element_of

__all__ = ["evaluate_as_partial_shape", "evaluate_both_bounds", "set_element_type", "set_tensor_type"]


def evaluate_both_bounds(output: Output) -> tuple[Tensor, Tensor]:
    """The lower and the upper bounds of the values of an output, empty tensors if they are unknown."""
    tensor = output.get_tensor()
    return tensor.get_lower_value(), tensor.get_upper_value()


def evaluate_as_partial_shape(output: Output, partial_shape: PartialShape) -> bool:
    """Set `partial_shape` to the values of an output. Returns False if the values are unknown."""
    dims = output._type.dims  # noqa: SLF001
    if dims is None:
        return False
    partial_shape._dims = PartialShape._from_dims(Dims(*dims))._dims  # noqa: SLF001
    return True


def set_element_type(tensor: DescriptorTensor, element_type: Type) -> None:
    """Change the element type of a tensor, until its node is inferred again."""
    set_tensor_type(tensor, element_type, tensor.partial_shape)


def set_tensor_type(tensor: DescriptorTensor, element_type: Type, partial_shape: PartialShape) -> None:
    """Change the element type and the shape of a tensor, until its node is inferred again."""
    source = tensor._port._source  # noqa: SLF001
    shape = dims_of(partial_shape)
    source.type = replace(source.type.without_value(), element=element_of(element_type), shape=shape)
    adapters.edited()

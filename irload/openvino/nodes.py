"""Parameter, Constant and Result: the inputs, constants and outputs of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload import graph
from irload.core.element import ElementType, f8e8m0, f16, nf4, string, u1, u4
from irload.core.packing import NF4_TABLE
from irload.core.tensor import Array
from irload.openvino import adapters, authoring
from irload.openvino.dimensions import PartialShape, dims_of
from irload.openvino.errors import OpenVINOError, raising, translated
from irload.openvino.layouts import Layout
from irload.openvino.node import Node, as_output
from irload.openvino.ports import keep_symbols
from irload.openvino.tensors import Tensor
from irload.openvino.types import Type, element_of, type_of
from irload.openvino.vectors import Strides
from irload.ops.casting import convert

__all__ = ["Constant", "Parameter", "Result", "layout_of", "set_layout_of"]


def layout_of(output: graph.Output) -> Layout:
    """The layout of a tensor, `Layout()` if none is set."""
    for entry in output.rt_info:
        if entry.get("name") == "layout":
            return Layout(entry["layout"])
    return Layout()


def set_layout_of(output: graph.Output, layout: Layout | str) -> None:
    """Set the layout, which is saved with the model. Raises for another number of axes."""
    layout = Layout(layout)
    rank, least = output.type.shape.rank, len([name for name in layout.names if name != "..."])
    if rank is not None and (rank < least or layout.rank not in (None, rank)):
        raise OpenVINOError(f"layout {layout} is not compatible with shape {output.type.shape} of '{output.node.name}'")
    output.rt_info[:] = [entry for entry in output.rt_info if entry.get("name") != "layout"]
    if not layout.empty:
        output.rt_info.append({"name": "layout", "version": "0", "layout": str(layout)})
    adapters.edited()


class Parameter(Node):
    """An input of a model: `Parameter(Type.f32, PartialShape([1, 3, -1, -1]))`."""

    def __init__(self, element_type: Any, shape: Any) -> None:
        with translated():
            self._adopt(authoring.parameter(element_of(element_type), dims_of(shape)))
        keep_symbols(self._node, shape)

    @property
    def element_type(self) -> Type:
        """The element type; assign to change it."""
        return self.output(0).element_type

    @element_type.setter
    def element_type(self, element_type: Any) -> None:
        self.set_element_type(element_type)

    @property
    def partial_shape(self) -> PartialShape:
        """The shape; assign to change it."""
        return self.output(0).partial_shape

    @partial_shape.setter
    def partial_shape(self, shape: Any) -> None:
        self.set_partial_shape(shape)

    @property
    def layout(self) -> Layout:
        """The names of the axes; assign to change them."""
        return layout_of(self._node.outputs[0])

    @layout.setter
    def layout(self, layout: Layout | str) -> None:
        self.set_layout(layout)

    def get_partial_shape(self) -> PartialShape:
        """`partial_shape`."""
        return self.partial_shape

    def get_layout(self) -> Layout:
        """`layout`."""
        return self.layout

    @raising
    def set_element_type(self, element_type: Any) -> None:
        """Change the element type."""
        self._replace(element_type=element_of(element_type))

    @raising
    def set_partial_shape(self, partial_shape: Any) -> None:
        """Change the shape."""
        self._replace(shape=dims_of(partial_shape))
        keep_symbols(self._node, partial_shape)

    def set_layout(self, layout: Layout | str) -> None:
        """Change the names of the axes."""
        set_layout_of(self._node.outputs[0], layout)

    def _replace(self, **changed: Any) -> None:
        op = self._node.op
        self._node.op = type(op)(**{**op.attributes, **changed})
        authoring.infer_node(self._node)
        adapters.edited()

    def __repr__(self) -> str:
        printed = repr(self.element_type)[len("<Type: '") : -len("'>")]
        printed = {"float32": "float", "double64": "double"}.get(printed, printed)
        return f"<Parameter: '{self.friendly_name}' ({self.partial_shape}, {printed})>"


class Constant(Node):
    """A constant: `Constant(array)`, `Constant(tensor)`, or `Constant(Type.f32, [2, 2], [1, 2, 3, 4])`."""

    def __init__(self, *given: Any, shared_memory: bool | None = None, array: Any = None, tensor: Any = None) -> None:
        with translated():
            first, *rest = given or (array if tensor is None else tensor,)
            if len(rest) >= 2:
                values, element = _filled(first, rest[0], rest[1])
            else:
                values, element = _held(first, rest[0] if rest else shared_memory)
            self._adopt(authoring.constant(values, element))

    def _array(self) -> Array:
        return self._node.op.attributes["data"]()

    @property
    def tensor_view(self) -> Tensor:
        """The values as a tensor, which shares their memory if the type is not packed."""
        return Tensor._from_array(self._array(), self._node.op.attributes["element_type"])  # noqa: SLF001

    @property
    def data(self) -> Array:
        """The values as a read-only array, packed types as bytes."""
        tensor = self.tensor_view
        shown = tensor.bytes_data if self._node.op.attributes["element_type"] is string else tensor.data
        shown = shown.view()
        shown.flags.writeable = False
        return shown

    @property
    def strides(self) -> Strides:
        """The distances of consecutive elements per axis, in bytes."""
        return self.tensor_view.strides

    def get_strides(self) -> Strides:
        """`strides`."""
        return self.strides

    def get_tensor_view(self) -> Tensor:
        """`tensor_view`."""
        return self.tensor_view

    def get_byte_size(self) -> int:
        """The size of the values in bytes."""
        return self.tensor_view.byte_size

    def get_data(self, *, dtype: Any = None, copy: bool = False) -> Array:
        """The values as an array of a dtype; packed types as bytes, or as numbers with a `dtype`."""
        element = self._node.op.attributes["element_type"]
        if dtype is None or (element.bits >= 8 and element is not string and np.dtype(dtype) == self.data.dtype):
            return self.data.copy() if copy else self.data
        if element is string:
            return self.tensor_view.str_data.astype(dtype)
        return self._array().astype(dtype)

    def get_vector(self) -> Array:
        """The values, flat."""
        element = self._node.op.attributes["element_type"]
        return (self._array() if element.bits < 8 else self.data).flatten()

    def get_value_strings(self) -> list[str]:
        """The values as texts."""
        return [f"{v:g}" if isinstance(v, float) else str(v) for v in self._array().reshape(-1).tolist()]


def _filled(given: Any, shape: Any, values: Any) -> tuple[Array, Any]:
    """The array of a type and shape with these values; one value fills it."""
    element = element_of(given)
    sizes = dims_of(shape).static
    if element is string:
        array = Tensor(np.asarray(values, np.str_))._value()  # noqa: SLF001
    elif element is nf4 and np.asarray(values).dtype.kind in "iub":
        array = NF4_TABLE[_in_range(np.asarray(values), u4)]  # integers are codes
    else:
        array = np.asarray(values)
        if element.is_low_precision and element is not f16 and array.dtype.kind == "f":
            array = array.astype(np.float32)  # like OpenVINO, round to f32 first, then to the type
        if element.is_integer and (element.bits < 8 or not isinstance(values, np.ndarray)):
            array = _in_range(array, element)
        array = convert(array, element) if element in (nf4, f8e8m0) else array.astype(element.dtype)
    count = int(np.prod(sizes, dtype=np.int64))
    if array.size not in (1, count):
        raise OpenVINOError(f"a constant of shape {list(sizes)} has {count} values, found {array.size}")
    return np.array(np.broadcast_to(array.reshape(-1), count)).reshape(sizes), element


def _in_range(array: Array, element: ElementType) -> Array:
    """The numbers, for u1 whether they are nonzero. Raises for numbers outside the range of the integer type."""
    if element is u1:
        return array != 0
    sign = int(element.is_signed)
    low, high = -sign << (element.bits - 1), (1 << (element.bits - sign)) - 1
    beyond = (np.trunc(array) < low) | (np.trunc(array) > high)
    if beyond.any():
        raise OpenVINOError(f"a constant of {element} has values from {low} to {high}, found {array[beyond][0]}")
    return array


def _held(source: Any, shared: bool | None) -> tuple[Array, Any]:
    if isinstance(source, Tensor):
        element = element_of(source.element_type)
        values = source._value()  # noqa: SLF001
        return (values if shared or shared is None else values.copy()), element
    array = np.asarray(source)
    if shared and not array.flags.c_contiguous:
        raise OpenVINOError("SHARED MEMORY MODE FOR THIS CONSTANT IS NOT APPLICABLE! The array is not C contiguous.")
    tensor = Tensor(array, shared_memory=bool(shared))
    return tensor._value(), element_of(type_of(element_of(tensor.element_type)))  # noqa: SLF001


class Result(Node):
    """An output of a model: `Result(node.output(0))`."""

    def __init__(self, source: Any) -> None:
        self._adopt(authoring.result(as_output(source)))

    @property
    def layout(self) -> Layout:
        """The names of the axes; assign to change them."""
        return layout_of(self._node.inputs[0])

    @layout.setter
    def layout(self, layout: Layout | str) -> None:
        self.set_layout(layout)

    def get_layout(self) -> Layout:
        """`layout`."""
        return self.layout

    def set_layout(self, layout: Layout | str) -> None:
        """Change the names of the axes."""
        set_layout_of(self._node.inputs[0], layout)


adapters.kinds.update({"Parameter": Parameter, "Const": Constant, "Result": Result})

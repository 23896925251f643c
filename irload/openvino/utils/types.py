"""`openvino.utils.types`: types and constants from Python numbers and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.openvino import adapters, authoring
from irload.openvino.errors import OVTypeError
from irload.openvino.node import Node
from irload.openvino.nodes import Constant
from irload.openvino.ports import Output
from irload.openvino.types import Type

__all__ = [
    "NodeInput",
    "NumericData",
    "NumericType",
    "ScalarData",
    "TensorShape",
    "as_node",
    "as_nodes",
    "get_dtype",
    "get_element_type",
    "get_element_type_str",
    "get_ndarray",
    "get_numpy_ctype",
    "get_shape",
    "make_constant_node",
]

TensorShape = list[int]
NumericData = int | float | Array
NumericType = type | np.dtype[Any]
ScalarData = int | float
NodeInput = Node | int | float | Array


def get_element_type(data_type: Any) -> Type:
    """The Type of a Python type or dtype; i32 for int, f32 for float. Raises OVTypeError."""
    if data_type in (int, float):
        return Type.i32 if data_type is int else Type.f32
    try:
        return Type(data_type)
    except (RuntimeError, TypeError):
        raise OVTypeError(f"Unidentified data type {data_type}") from None


def get_element_type_str(data_type: Any) -> str:
    """The name of `get_element_type`."""
    return get_element_type(data_type).type_name


def get_dtype(openvino_type: Type) -> np.dtype[Any]:
    """The dtype of a Type; uint16 for bf16. Raises OVTypeError for types without one."""
    return np.dtype(get_numpy_ctype(openvino_type))


def get_numpy_ctype(openvino_type: Type) -> type:
    """The class of NumPy's numbers, or bool or str, for a Type. Raises OVTypeError for types without one."""
    special: dict[Type, type] = {Type.boolean: bool, Type.string: str, Type.bf16: np.uint16}
    if openvino_type in special:
        return special[openvino_type]
    if openvino_type.is_dynamic() or openvino_type.bitwidth < 8 or openvino_type.type_name.startswith("f8"):
        raise OVTypeError(f"Unidentified data type {openvino_type}")
    return openvino_type.to_dtype().type


def get_ndarray(data: Any) -> Array:
    """The data as an array."""
    return np.asarray(data)


def get_shape(data: Any) -> Any:
    """The shape of an array, the length of a list, empty for a number."""
    if isinstance(data, np.ndarray):
        return data.shape
    return [len(data)] if isinstance(data, list) else []


def make_constant_node(value: Any, dtype: Any = None, *, name: str | None = None) -> Constant:
    """A constant of numbers, of a Type or dtype."""
    array = np.asarray(value)
    element = get_element_type(array.dtype) if dtype is None else dtype
    constant = Constant(element if isinstance(element, Type) else get_element_type(element), array.shape, array)
    if name:
        constant.friendly_name = f"{name}/{constant.friendly_name}"
    return constant


def as_node(input_value: Any, name: str | None = None) -> Node | Output:
    """A node or output unchanged, numbers as a constant."""
    if isinstance(input_value, Node | Output):
        return input_value
    node = adapters.adapter(authoring.as_input(input_value).node)
    if name:
        node.friendly_name = f"{name}/{node.friendly_name}"
    return node


def as_nodes(*input_values: Any, name: str | None = None) -> list[Node | Output]:
    """Several values as nodes."""
    return [as_node(value, name) for value in input_values]

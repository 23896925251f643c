"""Inputs of an inference: arrays, tensors, numbers and texts converted to the tensors of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from irload.core.element import ELEMENTS, ElementType, bf16, string
from irload.core.tensor import Array
from irload.openvino.errors import OpenVINOError
from irload.openvino.ports import ConstOutput
from irload.openvino.tensors import Tensor
from irload.openvino.types import type_of

if TYPE_CHECKING:
    from irload.openvino.requests import InferRequest

__all__ = ["set_inputs"]

_SIMPLE = (str, bytes, int, float)
_AS_STORED = frozenset(e for e in ELEMENTS if e.bits >= 8 and e is not string and type_of(e).to_dtype() == e.dtype)
"""Element types for which the dtype of `Tensor.data` is irload's storage dtype."""


def set_inputs(request: InferRequest, inputs: Any, *, shared: bool) -> None:
    """Set the inputs of a request.

    `inputs`: a dict by index, name or port, a list or tuple in order, or the value of the only input. Arrays are copied
    into the tensors of the request, or with `shared` used in place if dtype and memory allow it. Tensors are set.
    """
    for key, value in _items(request, inputs):
        if isinstance(value, Tensor):
            request._set_tensor(key, value)  # noqa: SLF001
            continue
        index = request._input_index(key)  # noqa: SLF001
        current = request._input(index)  # noqa: SLF001
        element = request._owner._elements[index]  # noqa: SLF001
        if _is_tensor_data(value, element):
            if shared and value.flags.writeable:
                request._put(index, Tensor._over_all(value, element))  # noqa: SLF001
                continue
            if not shared and current._shape == value.shape:  # noqa: SLF001
                request._require_shape(index, value.shape)  # noqa: SLF001
                current._data[...] = value  # noqa: SLF001
                continue
        array = _fitting(value, element, current)
        if shared or array.ndim == 0 or request._is_given(index, array):  # noqa: SLF001
            request._put(index, _tensor(array, element, shared, array is value))  # noqa: SLF001
        else:
            request._require_shape(index, array.shape)  # noqa: SLF001
            current.shape = array.shape
            current.data = array


def _is_tensor_data(value: Any, element: ElementType) -> bool:
    """True for an array that has the dtype and the order of a tensor's data, the most frequent input."""
    if type(value) is not np.ndarray or value.dtype is not element.dtype or not value.ndim:
        return False
    return value.flags.c_contiguous and element in _AS_STORED


def _items(request: InferRequest, inputs: Any) -> list[tuple[Any, Any]]:
    if inputs is None:
        return []
    if isinstance(inputs, Mapping):
        items = [*cast("Mapping[Any, Any]", inputs).items()]
        for key, _ in items:
            if not isinstance(key, str | int | ConstOutput):
                raise TypeError(f"Incompatible key type for input: {key}")
        if items and all(isinstance(key, ConstOutput) for key, _ in items) and not _all_known(request, items):
            return [(k, value) for k, (_, value) in enumerate(items)]  # the outputs of another inference
        return items
    values: Any = inputs
    if isinstance(values, list) and _is_simple(cast("list[Any]", values)) and len(request.model_inputs) == 1:
        values = [values]
    if isinstance(values, list | tuple):
        return list(enumerate(cast("list[Any]", values)))
    if not isinstance(values, Tensor | np.generic | str | bytes | int | float) and not hasattr(values, "__array__"):
        raise TypeError(f"Incompatible inputs of type: {type(values)}")
    if len(request.model_inputs) != 1:
        raise OpenVINOError(f"one value was given for a model of {len(request.model_inputs)} inputs")
    return [(0, values)]


def _all_known(request: InferRequest, items: list[tuple[Any, Any]]) -> bool:
    return all(key in request.model_inputs for key, _ in items)


def _is_simple(items: list[Any]) -> bool:
    return all(_is_simple(cast("list[Any]", i)) if isinstance(i, list) else isinstance(i, _SIMPLE) for i in items)


def _fitting(value: Any, element: ElementType, current: Tensor) -> Array:
    """The value as an array of the dtype of the tensor's data; strings unchanged."""
    if not isinstance(value, np.ndarray):
        if not isinstance(value, np.generic | list | str | bytes | int | float) and not hasattr(value, "__array__"):
            raise TypeError(f"Incompatible inputs of type: {type(value)}")
        value = np.asarray(value)
    array = cast(Array, value)
    if element is string:
        return array
    dtype = type_of(element).to_dtype()
    if element is bf16 and array.dtype.itemsize == 2 and array.dtype.kind in "fV":
        array = array.view(dtype)
    elif element is bf16 or (element.is_float and dtype != element.dtype and array.dtype.kind == "f"):
        array = array.astype(element.dtype).view(dtype)
    elif array.dtype != dtype:
        try:
            array = array.astype(dtype)
        except (TypeError, ValueError) as error:
            raise OpenVINOError(f"cannot convert an input of dtype {array.dtype} to {element}: {error}") from None
    if array.ndim == 0 and tuple(current.shape):
        array = array.reshape(tuple(current.shape) if current.size == 1 else (1,))
    return array


def _tensor(array: Array, element: ElementType, shared: bool, unchanged: bool) -> Tensor:
    """A tensor of the array, over its memory if that is possible."""
    if element is string:
        return Tensor(array)
    shared = shared and array.flags.c_contiguous and array.flags.writeable
    if element.bits < 8 or type_of(element).to_dtype() != element.dtype:
        return Tensor(np.ascontiguousarray(array), array.shape, type_of(element))
    return Tensor(array, shared_memory=shared or (not unchanged and array.flags.c_contiguous))

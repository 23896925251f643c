"""Tensor: an array with an element type, in the memory layout that OpenVINO's Python API shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Self, cast
from warnings import warn

import numpy as np

from irload.core.element import ElementType, string
from irload.core.packing import pack, unpack
from irload.core.tensor import Array
from irload.openvino.errors import OpenVINOError, raising, translated
from irload.openvino.strings import as_strings, decoded, encoded
from irload.openvino.types import Type, element_of, type_of
from irload.openvino.vectors import Shape, Strides

__all__ = ["Tensor", "TensorVector"]

_NOT_SHARED = "SHARED MEMORY MODE FOR THIS TENSOR IS NOT APPLICABLE! String types can be only copied."


class Tensor:
    """An array with an element type.

    `Tensor(array, shared_memory=False)`, `Tensor(array, shape, type)` over the packed bytes of an array,
    `Tensor(type, shape)`, `Tensor(port)`, `Tensor(port, array)`, `Tensor(list)`, `Tensor(tensor, begin, end)` for a
    view of a part, `Tensor(image)` of Pillow.
    """

    __slots__ = ("__weakref__", "_data", "_element", "_fixed", "_memory", "_shape")
    _element: ElementType
    _data: Array
    """Elements of at least 8 bits with the shape of the tensor, packed bytes, or `str` objects."""
    _shape: tuple[int, ...]
    _fixed: bool
    """True for memory of the caller, which cannot grow."""
    _memory: Array
    """The whole buffer, of which `_data` is the first part after a change of the shape."""

    def __init__(self, *given: Any, **named: Any) -> None:
        with translated():
            self._set_up(*_arguments(given, named), **named)

    def _set_up(self, source: Any, *rest: Any, shared_memory: bool = False, **named: Any) -> None:
        self._fixed = False
        if isinstance(source, Tensor):
            self._view(source, *rest)
        elif isinstance(source, np.ndarray) and rest and isinstance(rest[0], bool):
            self._hold(source, shared=rest[0])
        elif isinstance(source, np.ndarray) and (rest or "shape" in named):
            self._over(source, *rest, **named)
        elif isinstance(source, np.ndarray):
            self._hold(source, shared=shared_memory)
        elif isinstance(source, list):
            if rest:
                raise TypeError("a Tensor of a list takes no type: its elements determine it")
            self._hold(_array_of(cast("list[Any]", source)))
        elif hasattr(source, "get_partial_shape"):
            self._of_port(source, *rest)
        elif not rest and not isinstance(source, type | np.dtype) and _is_array_like(source):
            self._hold(np.asarray(source))
        else:
            self._allocate(element_of(source), _sizes(*rest, **named))

    def _allocate(self, element: ElementType, shape: tuple[int, ...]) -> None:
        self._element, self._shape = element, shape
        if element is string:
            self._data = np.full(shape, "", object)
        elif element.bits < 8:
            self._data = np.zeros(element.bytes_for(prod(shape)), type_of(element).to_dtype())
        else:
            self._data = np.zeros(shape, type_of(element).to_dtype())
        self._memory = self._data

    def _hold(self, array: Array, *, shared: bool = False) -> None:
        self._element = element_of(array.dtype)
        self._shape = array.shape
        if self._element is string:
            if shared:
                raise OpenVINOError(_NOT_SHARED)
            self._data = as_strings(array)
            return
        if shared and not array.flags.c_contiguous:
            raise OpenVINOError("SHARED MEMORY MODE FOR THIS TENSOR IS NOT APPLICABLE! The array is not C contiguous.")
        self._data = array if shared else np.array(array, order="C")
        self._data = self._data.view(type_of(self._element).to_dtype())
        self._fixed = shared

    def _over(self, array: Array, shape: Any, type: Any = None) -> None:
        """Use the memory of an array with another type or shape. Packed types take fewer bytes than elements."""
        sizes = _sizes(shape)
        element = element_of(array.dtype if type is None or _is_dynamic(type) else type)
        if element is string:
            raise OpenVINOError(_NOT_SHARED)
        if not array.flags.c_contiguous:
            raise OpenVINOError("an array whose memory is shared must be C contiguous")
        needed = element.bytes_for(prod(sizes))
        if array.nbytes < needed:
            raise OpenVINOError(f"{element}{list(sizes)} takes {needed} bytes; the array has {array.nbytes}")
        raw = array.reshape(-1).view(np.uint8)[:needed].view(type_of(element).to_dtype())
        self._element, self._shape, self._fixed = element, sizes, True
        self._data = raw if element.bits < 8 else raw.reshape(sizes)

    def _of_port(self, port: Any, array: Array | None = None) -> None:
        element, shape = element_of(port.get_element_type()), port.get_partial_shape()
        if array is not None and not isinstance(array, np.ndarray):
            raise TypeError(f"a tensor of a port takes a NumPy array, found {type(array).__name__}")
        if array is None or shape.is_dynamic:
            self._allocate(element, (0,) if shape.is_dynamic else tuple(shape.to_shape()))
            return
        sizes = tuple(shape.to_shape())
        if prod(sizes) > array.size:
            raise OpenVINOError("Shape of the port exceeds shape of the array.")
        if prod(sizes) < array.size:
            warn("Shape of the port is smaller than shape of the array.", RuntimeWarning, stacklevel=4)
        self._over(array, sizes, type_of(element))

    def _view(self, source: Tensor, begin: Sequence[int] = (), end: Sequence[int] = ()) -> None:
        if source._element.bits < 8 and source._element is not string and (len(begin) or len(end)):
            raise OpenVINOError("ROI Tensor for types with bitwidths less then 8 bit is not implemented")
        if len(begin) != len(end) or len(begin) not in (0, len(source._shape)):
            raise OpenVINOError(
                f"a part of a tensor of shape {source.shape} begins and ends at {len(source._shape)} indices"
            )
        part = tuple(map(slice, begin, end))
        if any(a > b for a, b in zip(begin, end, strict=True)) or any(
            b > n for b, n in zip(end, source._shape, strict=False)
        ):
            raise OpenVINOError(f"there is no part {list(begin)} to {list(end)} in a tensor of shape {source.shape}")
        self._element, self._fixed = source._element, True
        self._data = source._data[part] if part else source._data
        self._shape = self._data.shape if part else source._shape

    @staticmethod
    def _unfilled(port: Any) -> Tensor:
        """A new tensor for a port of a request. Dynamic dims have size 0."""
        shape = port.get_partial_shape()
        sizes = [] if shape.rank.is_dynamic else [d.get_length() if d.is_static else 0 for d in shape]
        return Tensor(port.get_element_type(), [0] if shape.rank.is_dynamic else sizes)

    @staticmethod
    def _from_array(array: Array, element: ElementType, *, shared: bool = True) -> Tensor:
        """A tensor of values in irload's storage dtype."""
        tensor = object.__new__(Tensor)
        tensor._element, tensor._shape, tensor._fixed = element, array.shape, False
        if element is string:
            tensor._data = array if not shared else array.copy()
        elif element.bits < 8:
            tensor._data = np.frombuffer(bytearray(pack(array, element)), type_of(element).to_dtype())
        else:
            tensor._data = np.ascontiguousarray(array).reshape(array.shape).view(type_of(element).to_dtype())
            tensor._data = tensor._data if shared else tensor._data.copy()
        return tensor

    @staticmethod
    def _over_all(array: Array, element: ElementType) -> Tensor:
        """A tensor over the memory of an array in C order that has the dtype of the tensor's data."""
        tensor = object.__new__(Tensor)
        tensor._element, tensor._shape, tensor._fixed, tensor._data = element, array.shape, True, array
        return tensor

    def _value(self) -> Array:
        """The values in irload's storage dtype: a view if the dtype has the width of the element."""
        if self._element is string:
            return self._data
        if self._element.bits < 8:
            return unpack(self._data.view(np.uint8), self._element, self._shape)
        return self._data.view(self._element.dtype)

    # -- properties ----------------------------------------------------------------------------------------------------

    @property
    def element_type(self) -> Type:
        """The element type."""
        return type_of(self._element)

    @property
    def shape(self) -> Shape:
        """The shape; assign to change it, with new memory if the elements do not fit."""
        return Shape(self._shape)

    @shape.setter
    def shape(self, shape: Any) -> None:
        self.set_shape(shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self._shape)

    @property
    def byte_size(self) -> int:
        """The size of the elements in bytes."""
        if self._element is string:
            return self.size * self.element_type.size
        return self._element.bytes_for(self.size)

    @property
    def strides(self) -> Strides:
        """The distances of consecutive elements in bytes. Raises for packed types."""
        if self._element.bits < 8 and self._element is not string:
            raise OpenVINOError("Could not get strides for types with bitwidths less then 8 bit.")
        return Strides(self._data.strides)

    @property
    def data(self) -> Array:
        """The memory as an array; writes change the tensor. Strings are copied, of kind S, with a warning."""
        if self._element is not string:
            return self._data
        warn(
            "Data of string type will be copied! Please use dedicated properties `str_data` and `bytes_data`.",
            RuntimeWarning,
            stacklevel=2,
        )
        return self.bytes_data

    @data.setter
    def data(self, array: Any) -> None:
        self._assign(array)

    @property
    def bytes_data(self) -> Array:
        """The strings, encoded, as an array of kind S. Raises for other types."""
        self._require_strings("bytes_data")
        return encoded(self._data)

    @bytes_data.setter
    def bytes_data(self, array: Any) -> None:
        self._require_strings("bytes_data")
        self._assign(array)

    @property
    def str_data(self) -> Array:
        """The strings as an array of kind U; bytes that are not UTF-8 are replaced. Raises for other types."""
        self._require_strings("str_data")
        return decoded(self._data)

    @str_data.setter
    def str_data(self, array: Any) -> None:
        self._require_strings("str_data")
        self._assign(array)

    def _require_strings(self, name: str) -> None:
        if self._element is not string:
            raise OpenVINOError(f"{name} is for tensors of strings; this one has elements {self._element}")

    def _assign(self, array: Any) -> None:
        array = np.asarray(array)
        if self._element is string:
            values = as_strings(array)
            if values.size != self.size:
                raise OpenVINOError(
                    "Passed array must have the same size (number of elements) as the Tensor! "
                    f"{values.size} strings do not fill a tensor of shape {self.shape}."
                )
            self._data[...] = values.reshape(self._shape)
        else:
            self._data[...] = array

    def get_element_type(self) -> Type:
        """`element_type`."""
        return self.element_type

    def get_shape(self) -> Shape:
        """`shape`."""
        return self.shape

    def get_size(self) -> int:
        """`size`."""
        return self.size

    def get_byte_size(self) -> int:
        """`byte_size`."""
        return self.byte_size

    def get_strides(self) -> Strides:
        """`strides`."""
        return self.strides

    def is_continuous(self) -> bool:
        """True if the elements are consecutive in row-major order. Raises for packed types."""
        if self._element.bits < 8 and self._element is not string:
            raise OpenVINOError("Could not get strides for types with bitwidths less then 8 bit.")
        return bool(self._data.flags.c_contiguous)

    @raising
    def set_shape(self, shape: Any) -> None:
        """Change the shape. Memory of the caller cannot grow."""
        sizes = _sizes(shape)
        if sizes == self._shape:
            return
        memory = getattr(self, "_memory", self._data)
        packed = self._element.bits < 8 and self._element is not string
        count = self._element.bytes_for(prod(sizes)) if packed else prod(sizes)
        if count <= memory.size and memory.flags.c_contiguous:
            kept = memory.reshape(-1)[:count]
            self._data = kept if packed else kept.reshape(sizes)
            self._memory, self._shape = memory, sizes
        elif self._fixed:
            raise OpenVINOError(
                f"set_shape failed: memory of the caller of shape {self.shape} cannot grow to {list(sizes)}"
            )
        else:
            self._allocate(self._element, sizes)

    @raising
    def copy_to(self, target_tensor: Tensor) -> None:
        """Copy the elements to another tensor of this type, which gets this shape."""
        if target_tensor._element is not self._element:
            raise OpenVINOError(f"a tensor of {self._element} cannot be copied to one of {target_tensor._element}")
        if target_tensor._shape != self._shape:
            target_tensor.set_shape(self._shape)
        target_tensor._data[...] = self._data

    @raising
    def copy_from(self, source: Any) -> None:
        """Copy the elements of a tensor, an array or a list of this type; this tensor gets its shape."""
        if not isinstance(source, Tensor):
            source = Tensor(source)
        source.copy_to(self)

    def __copy__(self) -> Tensor:
        return self._over_data(self._data, fixed=self._fixed)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self._over_data(np.array(self._data, order="C"), fixed=False)

    def _over_data(self, data: Array, *, fixed: bool) -> Tensor:
        tensor = object.__new__(Tensor)
        tensor._element, tensor._shape, tensor._fixed, tensor._data = self._element, self._shape, fixed, data
        return tensor

    def __repr__(self) -> str:
        return f"<Tensor: shape{self.shape} type: {self._element.name}>"


def _arguments(given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return positional arguments. Keyword arguments are `array`, `type` (first, with a shape), `port`, `image`."""
    for name in ("array", "port", "other", "image", "list"):
        if name in named:
            given = (named.pop(name), *given)
    if not given and "type" in named:
        given = (named.pop("type"),)
    for name in ("begin", "end"):
        if name in named:
            given = (*given, named.pop(name))
    if not given:
        raise TypeError("Tensor() takes an array, a list, a port, a tensor, or a type and a shape")
    return given


def _sizes(shape: Iterable[Any]) -> tuple[int, ...]:
    sizes = tuple(int(n) for n in shape)
    if any(n < 0 for n in sizes):
        raise TypeError(f"the sizes of a tensor are at least 0, found {list(sizes)}")
    return sizes


def _is_dynamic(given: Any) -> bool:
    return isinstance(given, Type) and given.is_dynamic()


def _is_array_like(given: Any) -> bool:
    """True for arrays of other libraries and images of Pillow."""
    return hasattr(given, "__array__") or hasattr(given, "__array_interface__")


def _array_of(items: list[Any]) -> Array:
    """The array of a list of numbers or texts."""
    array = np.array(items)
    if array.dtype == object:
        raise OpenVINOError("a tensor cannot be created from a list of mixed or ragged items")
    return array


class TensorVector(list[Tensor]):
    """A list of tensors."""

    def __init__(self, tensors: Iterable[Tensor] = ()) -> None:
        super().__init__(tensors)
        if not all(isinstance(t, Tensor) for t in self):
            raise TypeError("a TensorVector has Tensors only")

    def __getitem__(self, index: Any) -> Any:
        selected: Any = super().__getitem__(index)
        return TensorVector(selected) if isinstance(selected, list) else selected

    def copy(self) -> Self:
        """A list of the same tensors."""
        return type(self)(self)

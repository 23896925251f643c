"""Type: the element types, with the names and NumPy dtypes of OpenVINO's Python API."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from irload.core.element import ELEMENTS, ElementType, element_of_dtype
from irload.errors import TypeMismatch
from irload.openvino.errors import OpenVINOError

__all__ = ["Type", "element_for", "element_of", "type_of"]

_PRINTED = {
    "boolean": "char",
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "double64",
    "nf4": "nfloat4",
    **{
        f"{sign}{bits}": f"{word}{bits}_t"
        for sign, word in (("i", "int"), ("u", "uint"))
        for bits in (4, 8, 16, 32, 64)
    },
    **{f"u{bits}": f"uint{bits}_t" for bits in (1, 2, 3, 6)},
}
"""Names in the repr that differ from the IR."""

_QUANTIZED = frozenset({"i4", "i8", "i32", "u8", "nf4", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1"})
_DTYPES = {"bf16": "float16", "nf4": "uint8", "string": "S", "f8e4m3": "uint8", "f8e5m2": "uint8", "f8e8m0": "uint8"}
"""The dtypes of tensor data that differ from irload's storage dtype: NumPy alone cannot represent these elements."""
_STRING_BYTES = 32
"""The size of one string object in OpenVINO, which is reported as its element size."""


class Type:
    """An element type. `Type(np.float32)`, `Type(np.dtype("int8"))` or a constant such as `Type.f32`."""

    __slots__ = ("_element",)
    _element: ElementType

    boolean: ClassVar[Type]
    bf16: ClassVar[Type]
    f16: ClassVar[Type]
    f32: ClassVar[Type]
    f64: ClassVar[Type]
    i4: ClassVar[Type]
    i8: ClassVar[Type]
    i16: ClassVar[Type]
    i32: ClassVar[Type]
    i64: ClassVar[Type]
    u1: ClassVar[Type]
    u2: ClassVar[Type]
    u3: ClassVar[Type]
    u4: ClassVar[Type]
    u6: ClassVar[Type]
    u8: ClassVar[Type]
    u16: ClassVar[Type]
    u32: ClassVar[Type]
    u64: ClassVar[Type]
    nf4: ClassVar[Type]
    f8e4m3: ClassVar[Type]
    f8e5m2: ClassVar[Type]
    f8e8m0: ClassVar[Type]
    f4e2m1: ClassVar[Type]
    string: ClassVar[Type]
    dynamic: ClassVar[Type]
    undefined: ClassVar[Type]

    def __new__(cls, dtype: Any) -> Type:
        if isinstance(dtype, Type):
            return dtype
        return type_of(element_of(dtype))

    def __repr__(self) -> str:
        return f"<Type: '{_PRINTED.get(self.type_name, self.type_name)}'>"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (Type, self.type_name)

    def __copy__(self) -> Type:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Type:
        return self

    @property
    def type_name(self) -> str:
        """The name in the IR: `f32`."""
        return self._element.name

    @property
    def bitwidth(self) -> int:
        """The width of one value in bits."""
        return 8 * _STRING_BYTES if self._element.kind == "string" else self._element.bits

    @property
    def size(self) -> int:
        """The width of one value in bytes, rounded up."""
        return -(-self.bitwidth // 8)

    @property
    def real(self) -> bool:
        """True for floating-point types; false for nf4."""
        return self._element.is_float and self.type_name != "nf4"

    @property
    def integral(self) -> bool:
        """True for all types that are not `real`, including boolean and string."""
        return not self.real

    @property
    def integral_number(self) -> bool:
        """True for `integral` types other than boolean."""
        return self.integral and self._element.kind != "boolean"

    @property
    def signed(self) -> bool:
        """True for floats, signed integers and boolean."""
        return self.real or self._element.kind in ("signed", "boolean")

    @property
    def quantized(self) -> bool:
        """True for the types of quantized values."""
        return self.type_name in _QUANTIZED

    def get_type_name(self) -> str:
        """`type_name`."""
        return self.type_name

    def get_bitwidth(self) -> int:
        """`bitwidth`."""
        return self.bitwidth

    def get_size(self) -> int:
        """`size`."""
        return self.size

    def is_real(self) -> bool:
        """`real`."""
        return self.real

    def is_integral(self) -> bool:
        """`integral`."""
        return self.integral

    def is_integral_number(self) -> bool:
        """`integral_number`."""
        return self.integral_number

    def is_signed(self) -> bool:
        """`signed`."""
        return self.signed

    def is_quantized(self) -> bool:
        """`quantized`."""
        return self.quantized

    def is_dynamic(self) -> bool:
        """True for `Type.dynamic`."""
        return self._element.is_dynamic

    def is_static(self) -> bool:
        """True for all types except `Type.dynamic`."""
        return not self._element.is_dynamic

    def to_string(self) -> str:
        """`type_name`."""
        return self.type_name

    def to_dtype(self) -> np.dtype[Any]:
        """The dtype of `Tensor.data`. Packed types are bytes, bf16 is shown as float16. Raises for dynamic."""
        if self.is_dynamic():
            raise OpenVINOError("the dynamic type has no NumPy dtype")
        named = _DTYPES.get(self.type_name)
        if named is None and self._element.bits < 8:
            named = "int8" if self.type_name == "i4" else "uint8"
        return self._element.dtype if named is None else np.dtype(named)

    def compatible(self, other: Type) -> bool:
        """True if the types are equal or one of them is dynamic."""
        return self is other or self.is_dynamic() or other.is_dynamic()

    def merge(self, other: Type) -> Type | None:
        """The type that both allow, or None."""
        if not self.compatible(other):
            return None
        return other if self.is_dynamic() else self


_TYPES: dict[str, Type] = {}
for _element in ELEMENTS:
    _type = object.__new__(Type)
    _type._element = _element
    _TYPES[_element.name] = _type
    setattr(Type, _element.name, _type)
Type.undefined = Type.dynamic


def type_of(element: ElementType) -> Type:
    """The Type of one of irload's element types."""
    return _TYPES[element.name]


def element_for(given: Any) -> ElementType:
    """As `element_of`; i32 for `int` and f32 for `float`, as OpenVINO's factories of nodes take them."""
    return element_of({int: Type.i32, float: Type.f32}[given] if given in (int, float) else given)


def element_of(given: Any) -> ElementType:
    """The element type of a Type, a dtype, a Python type or the name of a dtype. Raises."""
    if isinstance(given, ElementType):
        return given
    if isinstance(given, Type):
        return given._element  # noqa: SLF001
    dtype = np.dtype(given)
    try:
        return element_of_dtype(dtype)
    except TypeMismatch as error:
        raise OpenVINOError(error.message) from None

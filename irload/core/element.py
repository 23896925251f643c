"""Element types: their names, widths, and the NumPy dtypes that store their values.

The table lists the types of the IR format. `dtype` is the *storage* dtype: the NumPy dtype of arrays with values of
that type. Narrow integers take one byte each; nf4 is stored as the f32 values of its table; strings are `str` in object
arrays. Several element types share a dtype, so a tensor has both an element type and a dtype.
"""

from __future__ import annotations

from typing import Any, Literal

import ml_dtypes
import numpy as np

from irload.core.remarks import remark
from irload.errors import TypeMismatch
from irload.record import record

__all__ = [
    "ELEMENTS",
    "INDEX",
    "ElementKind",
    "ElementType",
    "bf16",
    "boolean",
    "dynamic",
    "element",
    "element_of_dtype",
    "element_of_precision",
    "f4e2m1",
    "f8e4m3",
    "f8e5m2",
    "f8e8m0",
    "f16",
    "f32",
    "f64",
    "follow",
    "i4",
    "i8",
    "i16",
    "i32",
    "i64",
    "merge",
    "nf4",
    "string",
    "u1",
    "u2",
    "u3",
    "u4",
    "u6",
    "u8",
    "u16",
    "u32",
    "u64",
]

ElementKind = Literal["float", "signed", "unsigned", "boolean", "string", "dynamic"]


@record(eq=False)
class ElementType:
    """One element type. Instances are unique, so they compare by identity.

    `name` is the lower-case name of attributes (`f32`), `precision` the upper-case name of ports (`FP32`), `bits` the
    width of one value in the .bin file.
    """

    name: str
    precision: str
    bits: int
    kind: ElementKind
    dtype: np.dtype[Any]

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (element, (self.name,))

    @property
    def is_float(self) -> bool:
        """True for every floating-point type, including the 8-bit and 4-bit ones."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers; false for boolean."""
        return self.kind in ("signed", "unsigned")

    @property
    def is_signed(self) -> bool:
        """True for types with negative values."""
        return self.kind in ("signed", "float")

    @property
    def is_numeric(self) -> bool:
        """True for floats and integers, and for dynamic, which may become either."""
        return self.kind in ("float", "signed", "unsigned", "dynamic")

    @property
    def is_dynamic(self) -> bool:
        """True for the dynamic type, which is not known."""
        return self.kind == "dynamic"

    @property
    def is_low_precision(self) -> bool:
        """True for floats narrower than f32: operations compute them in f32 and round once at the output."""
        return self.kind == "float" and self.bits < 32

    def bytes_for(self, count: int) -> int:
        """The size in bytes of `count` packed values in a .bin file. u3 and u6 fill groups of three bytes."""
        if self is u3:
            return -(-count // 8) * 3
        if self is u6:
            return -(-count // 4) * 3
        return -(-count * self.bits // 8)


def _make(name: str, precision: str, bits: int, kind: ElementKind, dtype: Any) -> ElementType:
    return ElementType(name, precision, bits, kind, np.dtype(dtype))


f64 = _make("f64", "FP64", 64, "float", np.float64)
f32 = _make("f32", "FP32", 32, "float", np.float32)
f16 = _make("f16", "FP16", 16, "float", np.float16)
bf16 = _make("bf16", "BF16", 16, "float", ml_dtypes.bfloat16)
f8e4m3 = _make("f8e4m3", "F8E4M3", 8, "float", ml_dtypes.float8_e4m3fn)
f8e5m2 = _make("f8e5m2", "F8E5M2", 8, "float", ml_dtypes.float8_e5m2)
f8e8m0 = _make("f8e8m0", "F8E8M0", 8, "float", ml_dtypes.float8_e8m0fnu)
f4e2m1 = _make("f4e2m1", "F4E2M1", 4, "float", ml_dtypes.float4_e2m1fn)
nf4 = _make("nf4", "NF4", 4, "float", np.float32)
i64 = _make("i64", "I64", 64, "signed", np.int64)
i32 = _make("i32", "I32", 32, "signed", np.int32)
i16 = _make("i16", "I16", 16, "signed", np.int16)
i8 = _make("i8", "I8", 8, "signed", np.int8)
i4 = _make("i4", "I4", 4, "signed", np.int8)
u64 = _make("u64", "U64", 64, "unsigned", np.uint64)
u32 = _make("u32", "U32", 32, "unsigned", np.uint32)
u16 = _make("u16", "U16", 16, "unsigned", np.uint16)
u8 = _make("u8", "U8", 8, "unsigned", np.uint8)
u6 = _make("u6", "U6", 6, "unsigned", np.uint8)
u4 = _make("u4", "U4", 4, "unsigned", np.uint8)
u3 = _make("u3", "U3", 3, "unsigned", np.uint8)
u2 = _make("u2", "U2", 2, "unsigned", np.uint8)
u1 = _make("u1", "BIN", 1, "unsigned", np.uint8)
boolean = _make("boolean", "BOOL", 8, "boolean", np.bool_)
string = _make("string", "STRING", 0, "string", np.object_)
dynamic = _make("dynamic", "UNSPECIFIED", 0, "dynamic", np.object_)

ELEMENTS: tuple[ElementType, ...] = (
    *(f64, f32, f16, bf16, f8e4m3, f8e5m2, f8e8m0, f4e2m1, nf4),
    *(i64, i32, i16, i8, i4),
    *(u64, u32, u16, u8, u6, u4, u3, u2, u1),
    *(boolean, string, dynamic),
)
INDEX: tuple[ElementType, ...] = (i32, i64)
"""The types that the specification allows for indices and shapes (T_IND, output_type)."""

_BY_NAME = {e.name: e for e in ELEMENTS} | {"undefined": dynamic}
_BY_PRECISION = {e.precision: e for e in ELEMENTS} | {"U1": u1} | _BY_NAME  # Model Optimizer writes U1, OpenVINO BIN
# dtype → element type, for arrays without a declared type. Types that share the dtype of another type are omitted.
_BY_DTYPE = {e.dtype: e for e in reversed(ELEMENTS) if e not in (nf4, i4, u6, u4, u3, u2, u1, dynamic)}


def element(name: str) -> ElementType:
    """The type of an attribute's text: `f32`, ignoring case. Raises TypeMismatch for anything else."""
    result = _BY_NAME.get(name.lower())
    if result is None:
        raise TypeMismatch(f"'{name}' is not an element type; known are {', '.join(sorted(_BY_NAME))}")
    return result


def element_of_precision(text: str) -> ElementType:
    """The type of a port's `precision`: upper-case `FP32` or the exact lower-case name. Raises TypeMismatch."""
    result = _BY_PRECISION.get(text)
    if result is None:
        raise TypeMismatch(
            f"'{text}' is not a precision of a port; known are {', '.join(e.precision for e in ELEMENTS)}"
        )
    return result


def element_of_dtype(dtype: np.dtype[Any]) -> ElementType:
    """The element type whose values NumPy stores in `dtype`. Raises TypeMismatch if there is none."""
    if dtype.kind in "US" or isinstance(dtype, np.dtypes.StringDType):
        return string
    result = _BY_DTYPE.get(dtype.newbyteorder("="))
    if result is None:
        raise TypeMismatch(f"NumPy dtype {dtype} has no element type in OpenVINO")
    return result


def merge(*types: ElementType) -> ElementType:
    """The common type of operands that must agree; dynamic agrees with every type. Raises TypeMismatch."""
    result = dynamic
    for other in types:
        if result is dynamic:
            result = other
        elif other is not dynamic and other is not result:
            raise TypeMismatch(f"element types must agree, found {', '.join(t.name for t in types)}")
    return result


def follow(*types: ElementType) -> ElementType:
    """The type of the first operand with a known type. Other known types cause a remark: OpenVINO converts them."""
    known = [t for t in types if t is not dynamic]
    if any(t is not known[0] for t in known):
        names = ", ".join(t.name for t in types)
        remark(f"element types must agree by the specification, found {names}; {known[0]} is used")
    return known[0] if known else dynamic

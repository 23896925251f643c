"""Typed values of LLVM IR with Python's operators: `Int`, `Pointer`, `Bool` and `Vec`.

Each operator emits at most one instruction, into the function of its operands. Arithmetic on Python ints is done in
Python; operators of `Int` fold 0 and 1, and a pointer plus 0 is the pointer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irload.plan.backends.llvm.builder import Function

ELEMENTS = {"f32": "float", "f64": "double", "f16": "half", "bf16": "bfloat"}
"""LLVM's names of floating-point types. Names of integer types are equal."""
_NAMES = {text: name for name, text in ELEMENTS.items()}
SIZES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "u8": 1}
"""The bytes of each type."""


@dataclass(frozen=True, slots=True)
class LlvmValue:
    """A register or a constant of a function: its text and its LLVM type."""

    function: Function = field(repr=False, compare=False)
    text: str
    type: str

    def __str__(self) -> str:
        return self.text


def _comparison(how: str) -> Callable[[Int, AnyInt], Bool]:
    """An operator of `Int`. `how`: the condition of LLVM's icmp."""
    return lambda self, other: self.function.compare(how, self, other)


def _operator(of_floats: str, of_integers: str) -> Callable[[Vec, AnyVec], Vec]:
    """An operator of `Vec`: the instructions for floats, empty if there is none, and for integers."""

    def apply(self: Vec, other: AnyVec) -> Vec:
        operation = of_floats if self.is_float else of_integers
        return self.function.value(self.type, f"{operation} {self.type} {self}, {self.operand(other)}")

    return apply


@dataclass(frozen=True, slots=True)
class Int(LlvmValue):
    """An i64. Division is unsigned, so its operands must not be negative."""

    def __add__(self, other: AnyInt) -> AnyInt:
        return self if other == 0 else self._emit("add nsw", self, other)

    def __radd__(self, other: int) -> AnyInt:
        return self if other == 0 else self._emit("add nsw", other, self)

    def __sub__(self, other: AnyInt) -> AnyInt:
        return self if other == 0 else self._emit("sub nsw", self, other)

    def __rsub__(self, other: int) -> AnyInt:
        return self._emit("sub nsw", other, self)

    def __mul__(self, other: AnyInt) -> AnyInt:
        return self._folded_product(other, self, other)

    def __rmul__(self, other: int) -> AnyInt:
        return self._folded_product(other, other, self)

    def __floordiv__(self, other: AnyInt) -> AnyInt:
        return self if other == 1 else self._emit("udiv", self, other)

    def __rfloordiv__(self, other: int) -> AnyInt:
        return self._emit("udiv", other, self)

    def __mod__(self, other: AnyInt) -> AnyInt:
        return 0 if other == 1 else self._emit("urem", self, other)

    def __divmod__(self, other: AnyInt) -> tuple[AnyInt, AnyInt]:
        """Quotient and remainder by one division."""
        quotient = self // other
        return quotient, self - quotient * other if other != 1 else 0

    def __rdivmod__(self, other: int) -> tuple[AnyInt, AnyInt]:
        quotient = other // self
        return quotient, other - quotient * self

    __lt__ = _comparison("slt")
    __le__ = _comparison("sle")
    __gt__ = _comparison("sgt")
    __ge__ = _comparison("sge")

    def below(self, other: AnyInt) -> Bool:
        """True if 0 ≤ self < other, by one comparison without sign."""
        return self.function.compare("ult", self, other)

    def cast(self, instruction: str, element: str) -> Vec:
        """Convert by an instruction: trunc to fewer bits, or sitofp."""
        to = vec_type(element, 1)
        return self.function.value(to, f"{instruction} i64 {self} to {to}")

    def _folded_product(self, factor: AnyInt, a: AnyInt, b: AnyInt) -> AnyInt:
        """The product a · b of this integer and a factor."""
        if factor == 0:
            return 0
        return self if factor == 1 else self._emit("mul nsw", a, b)

    def _emit(self, operation: str, a: AnyInt, b: AnyInt) -> Int:
        return self.function.value("i64", f"{operation} i64 {a}, {b}")


AnyInt = int | Int
"""An i64: a constant of the code (int), or a value at run time."""


@dataclass(frozen=True, slots=True)
class Bool(LlvmValue):
    """An i1, or a vector of i1."""

    def __and__(self, other: AnyBool) -> Bool:
        return self.function.value(self.type, f"and {self.type} {self}, {literal(other)}")

    def __rand__(self, other: bool) -> Bool:
        return self.function.value(self.type, f"and {self.type} {literal(other)}, {self}")

    def __or__(self, other: AnyBool) -> Bool:
        return self.function.value(self.type, f"or {self.type} {self}, {literal(other)}")

    def bits(self) -> Vec:
        """A vector of i32: all bits of a lane are 1 if the condition is true, else 0."""
        lanes = parsed(self.type)[1]
        return self.function.value(vec_type("i32", lanes), f"sext {self.type} {self} to {vec_type('i32', lanes)}")

    def as_int(self) -> Int:
        """0 or 1."""
        return self.function.value("i64", f"zext i1 {self} to i64")


AnyBool = bool | Bool
"""An i1: a constant of the code (bool), or a value at run time."""


def literal(condition: AnyBool) -> str:
    """A condition in LLVM's syntax."""
    return str(condition).lower() if isinstance(condition, bool) else condition.text


@dataclass(frozen=True, slots=True)
class Pointer(LlvmValue):
    """An address. Offsets are in bytes."""

    def __add__(self, offset: AnyInt) -> Pointer:
        return self if offset == 0 else self.function.value("ptr", f"getelementptr i8, ptr {self}, i64 {offset}")

    def __sub__(self, other: Pointer) -> Int:
        """The bytes from another address to this one."""
        f = self.function
        begin, end = (f.value("i64", f"ptrtoint ptr {pointer} to i64") for pointer in (other, self))
        return f.value("i64", f"sub i64 {end}, {begin}")


@dataclass(frozen=True, slots=True)
class Vec(LlvmValue):
    """A vector of numbers, or a single one (`lanes` 1). Python numbers as operands apply to all lanes.

    Floating-point operators follow IEEE 754. Integer operators wrap; `>>` is an arithmetic shift.
    """

    @property
    def element(self) -> str:
        """f32, f64, f16, bf16, i8, i16, i32 or i64."""
        return parsed(self.type)[0]

    @property
    def lanes(self) -> int:
        """The number of elements."""
        return parsed(self.type)[1]

    @property
    def is_float(self) -> bool:
        """True for floating-point elements."""
        return self.element in ELEMENTS

    def operand(self, other: AnyVec) -> Vec:
        """The other operand of an operator: a vector, or a number in all lanes."""
        return other if isinstance(other, Vec) else self.constant(other)

    def constant(self, number: float) -> Vec:
        """A number in all lanes of the same type."""
        text = float_bits(number, self.element) if self.is_float else str(number)
        text = f"{ELEMENTS.get(self.element, self.element)} {text}"
        return Vec(self.function, f"splat ({text})" if self.lanes > 1 else text.split()[1], self.type)

    __add__ = __radd__ = _operator("fadd", "add")
    __mul__ = __rmul__ = _operator("fmul", "mul")
    __sub__ = _operator("fsub", "sub")
    __truediv__ = _operator("fdiv", "sdiv")
    __and__ = _operator("", "and")
    __or__ = _operator("", "or")
    __xor__ = _operator("", "xor")
    __lshift__ = _operator("", "shl")
    __rshift__ = _operator("", "ashr")
    shifted_right = _operator("", "lshr")
    """Logical right shift, by one number or by one per lane."""

    def __rsub__(self, other: float) -> Vec:
        return self.constant(other) - self

    def __rtruediv__(self, other: float) -> Vec:
        return self.constant(other) / self

    def __neg__(self) -> Vec:
        return self.function.value(self.type, f"fneg {self.type} {self}")

    def __abs__(self) -> Vec:
        return self.unary("fabs")

    def times_plus(self, factor: AnyVec, addend: AnyVec) -> Vec:
        """The sum self · factor + addend, rounded once."""
        return self.function.fma(self, self.operand(factor), self.operand(addend))

    def unary(self, name: str) -> Vec:
        """An intrinsic of one argument: sqrt, rint, floor, ceil, fabs."""
        return self.function.value(self.type, f"call {self.type} @llvm.{name}.{self._suffix}({self.type} {self})")

    def compare(self, how: str, other: AnyVec) -> Bool:
        """Compare lane by lane. `how`: olt, ogt, uno and the like, for integers eq, slt, sgt and the like."""
        lanes = self.lanes
        kind, instruction = ("i1" if lanes == 1 else f"<{lanes} x i1>"), "fcmp" if self.is_float else "icmp"
        return self.function.value(kind, f"{instruction} {how} {self.type} {self}, {self.operand(other)}")

    def where(self, condition: Bool, other: AnyVec) -> Vec:
        """`self` where the condition is true, else `other`."""
        return self.function.select(condition, self, self.operand(other))

    def at_least(self, low: AnyVec) -> Vec:
        """The larger of self and a bound that is not NaN; NaN for NaN."""
        low = self.operand(low)
        return low.where(low.compare("ogt", self), self)

    def at_most(self, high: AnyVec) -> Vec:
        """The smaller of self and a bound that is not NaN; NaN for NaN."""
        high = self.operand(high)
        return high.where(high.compare("olt", self), self)

    def maximum(self, other: Vec) -> Vec:
        """The larger of both; NaN if either is NaN."""
        return self._chosen("ogt", other)

    def minimum(self, other: Vec) -> Vec:
        """The smaller of both; NaN if either is NaN."""
        return self._chosen("olt", other)

    def with_sign_of(self, other: Vec) -> Vec:
        """|self| with the sign of `other`."""
        arguments = f"{self.type} {self}, {self.type} {other}"
        return self.function.value(self.type, f"call {self.type} @llvm.copysign.{self._suffix}({arguments})")

    def bits(self) -> Vec:
        """The bits as integers of the same size."""
        return self.bitcast(vec_type(f"i{8 * SIZES[self.element]}", self.lanes))

    def floats(self) -> Vec:
        """Integers of 32 bits, reinterpreted as f32."""
        return self.bitcast(vec_type("f32", self.lanes))

    def bitcast(self, type: str) -> Any:
        """The bits, reinterpreted as another type."""
        return self.function.value(type, f"bitcast {self.type} {self} to {type}")

    def cast(self, instruction: str, element: str) -> Vec:
        """Convert each lane by an instruction: sitofp, fptosi, fpext, fptrunc, zext, sext, trunc."""
        to = vec_type(element, self.lanes)
        return self.function.value(to, f"{instruction} {self.type} {self} to {to}")

    def converted(self) -> Vec:
        """Signed integers as f32."""
        return self.cast("sitofp", "f32")

    def lane(self, index: AnyInt) -> Vec:
        """One element."""
        return self.function.value(vec_type(self.element, 1), f"extractelement {self.type} {self}, i64 {index}")

    def with_lane(self, index: AnyInt, element: Vec) -> Vec:
        """The vector with one element replaced."""
        text = f"insertelement {self.type} {self}, {element.type} {element}, i64 {index}"
        return self.function.value(self.type, text)

    def _chosen(self, how: str, other: Vec) -> Vec:
        """`self` where the comparison with `other` holds, else `other`; NaN if either is NaN."""
        chosen = self.where(self.compare(how, other), other)
        return self.where(self.compare("uno", self), chosen)

    @property
    def _suffix(self) -> str:
        return f"v{self.lanes}{self.element}" if self.lanes > 1 else self.element


AnyVec = Vec | float


def vec_type(element: str, lanes: int) -> str:
    """LLVM's name of a vector type, or of the type of its elements for one lane."""
    name = ELEMENTS.get(element, element)
    return name if lanes == 1 else f"<{lanes} x {name}>"


@cache
def parsed(type: str) -> tuple[str, int]:
    """Element and lanes of a type: the inverse of `vec_type`."""
    lanes, name = type[1:-1].split(" x ") if type.startswith("<") else ("1", type)
    return _NAMES.get(name, name), int(lanes)


def typed(f: Function, text: str, type: str) -> Any:
    """A value of the class for an LLVM type."""
    if type == "i64":
        return Int(f, text, type)
    if type == "ptr":
        return Pointer(f, text, type)
    if type.startswith("{") or type.endswith("x ptr>"):
        return LlvmValue(f, text, type)
    return (Bool if parsed(type)[0] == "i1" else Vec)(f, text, type)


def float_bits(number: float, element: str = "f32") -> str:
    """A number, rounded to f32 or f64, in LLVM's syntax: the bits of its value as f64, in hexadecimal."""
    if element != "f64":
        (number,) = struct.unpack("<f", struct.pack("<f", number))
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"

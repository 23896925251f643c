"""Vectors of f32 and their bits with Python's operators, in which functions are written as formulas.

Numbers stand for vectors of them. Each operation is one instruction, rounded as IEEE 754 says, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irload.plan.backends.llvm.builder import Function, Value


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector of f32 in a function."""

    function: Function
    value: Value

    def _operand(self, other: Operand) -> Value:
        return other.value if isinstance(other, Vector) else self.function.number(other)

    def _new(self, value: Value) -> Vector:
        return Vector(self.function, value)

    def __add__(self, other: Operand) -> Vector:
        return self._new(self.function.arithmetic("fadd", self.value, self._operand(other)))

    def __radd__(self, other: float) -> Vector:
        return self + other

    def __sub__(self, other: Operand) -> Vector:
        return self._new(self.function.arithmetic("fsub", self.value, self._operand(other)))

    def __rsub__(self, other: float) -> Vector:
        return self._new(self.function.arithmetic("fsub", self._operand(other), self.value))

    def __mul__(self, other: Operand) -> Vector:
        return self._new(self.function.arithmetic("fmul", self.value, self._operand(other)))

    def __rmul__(self, other: float) -> Vector:
        return self * other

    def __truediv__(self, other: Operand) -> Vector:
        return self._new(self.function.arithmetic("fdiv", self.value, self._operand(other)))

    def __rtruediv__(self, other: float) -> Vector:
        return self._new(self.function.arithmetic("fdiv", self._operand(other), self.value))

    def __neg__(self) -> Vector:
        f = self.function
        return self._new(f.value(f.vector, f"fneg {f.vector} {self.value}"))

    def __abs__(self) -> Vector:
        return self._new(self.function.unary("fabs", self.value))

    def times_plus(self, factor: Operand, addend: Operand) -> Vector:
        """The sum self · factor + addend, rounded once."""
        return self._new(self.function.fma(self.value, self._operand(factor), self._operand(addend)))

    def unary(self, name: str) -> Vector:
        """An intrinsic: sqrt, rint, floor, ceil."""
        return self._new(self.function.unary(name, self.value))

    def compare(self, how: str, other: Operand) -> Value:
        """A vector of i1: `how` is olt, ogt, uno and the like."""
        return self.function.compare_floats(how, self.value, self._operand(other))

    def where(self, condition: Value, other: Operand) -> Vector:
        """Self where the condition holds, else the other one."""
        return self._new(self.function.select(condition, self.value, self._operand(other)))

    def at_least(self, number: float) -> Vector:
        """The larger of self and a number; NaN stays."""
        f, low = self.function, self.function.number(number)
        return self._new(f.select(f.compare_floats("ogt", low, self.value), low, self.value))

    def at_most(self, number: float) -> Vector:
        """The smaller of self and a number; NaN stays."""
        f, high = self.function, self.function.number(number)
        return self._new(f.select(f.compare_floats("olt", high, self.value), high, self.value))

    def maximum(self, other: Vector) -> Vector:
        """The larger one; NaN where either is."""
        larger = self.where(self.compare("ogt", other), other)
        return self.where(self.compare("uno", self), larger)

    def minimum(self, other: Vector) -> Vector:
        """The smaller one; NaN where either is."""
        smaller = self.where(self.compare("olt", other), other)
        return self.where(self.compare("uno", self), smaller)

    def with_sign_of(self, other: Vector) -> Vector:
        """|self| with the other one's sign."""
        f = self.function
        arguments = f"{f.vector} {self.value}, {f.vector} {other.value}"
        return self._new(f.value(f.vector, f"call {f.vector} @llvm.copysign.v{f.lanes}f32({arguments})"))

    def bits(self) -> Bits:
        """The same bits as integers."""
        f = self.function
        return Bits(f, f.value(f.integers, f"bitcast {f.vector} {self.value} to {f.integers}"))


Operand = Vector | float


@dataclass(frozen=True, slots=True)
class Bits:
    """A vector of i32. Arithmetic wraps."""

    function: Function
    value: Value

    def _apply(self, operation: str, other: Bits | int) -> Bits:
        f = self.function
        operand = other.value if isinstance(other, Bits) else f"splat (i32 {other})"
        return Bits(f, f.value(f.integers, f"{operation} {f.integers} {self.value}, {operand}"))

    def __add__(self, other: Bits | int) -> Bits:
        return self._apply("add", other)

    def __sub__(self, other: Bits | int) -> Bits:
        return self._apply("sub", other)

    def __and__(self, other: int) -> Bits:
        return self._apply("and", other)

    def __lshift__(self, count: int) -> Bits:
        return self._apply("shl", count)

    def __rshift__(self, count: int) -> Bits:
        """With the sign moved in."""
        return self._apply("ashr", count)

    def floats(self) -> Vector:
        """The same bits as f32."""
        f = self.function
        return Vector(f, f.value(f.vector, f"bitcast {f.integers} {self.value} to {f.vector}"))

    def converted(self) -> Vector:
        """The integers as f32."""
        f = self.function
        return Vector(f, f.value(f.vector, f"sitofp {f.integers} {self.value} to {f.vector}"))


def polynomial(x: Vector, coefficients: Sequence[float]) -> Vector:
    """coefficients[0] + coefficients[1]·x + … by Horner's rule. There are at least two."""
    *rest, second, first = coefficients
    result = x.times_plus(first, second)
    for c in reversed(rest):
        result = result.times_plus(x, c)
    return result

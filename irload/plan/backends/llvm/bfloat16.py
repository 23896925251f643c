"""Rounding vectors of f32 to bf16: to nearest, ties to even. NaN stays NaN."""

from __future__ import annotations

from irload.plan.backends.llvm import operands
from irload.plan.backends.llvm.builder import Function, Int, Value

BYTES = 2
"""Of one bf16."""


def rounded(f: Function, value: Value) -> Value:
    """A vector of f32 as bf16 in lanes of 16 bits. avx512_bf16 takes subnormal numbers for 0, as AMX does."""
    halves = f"<{f.lanes} x i16>"
    if "avx512bf16" in f.target.features:
        narrow = f"<{f.lanes} x bfloat>"
        short = f.value(narrow, f"fptrunc {f.vector} {value} to {narrow}")
        return f.value(halves, f"bitcast {narrow} {short} to {halves}")
    bits = f.value(f.integers, f"bitcast {f.vector} {value} to {f.integers}")
    high = f.value(f.integers, f"lshr {f.integers} {bits}, splat (i32 16)")
    odd = f.value(f.integers, f"and {f.integers} {high}, splat (i32 1)")
    moved = f.value(f.integers, f"add {f.integers} {bits}, {odd}")
    moved = f.value(f.integers, f"add {f.integers} {moved}, splat (i32 {0x7FFF})")
    number = f.value(f.integers, f"lshr {f.integers} {moved}, splat (i32 16)")
    quiet = f.value(f.integers, f"or {f.integers} {high}, splat (i32 {0x40})")
    result = f.select(f.compare_floats("uno", value, value), quiet, number)
    return f.value(halves, f"trunc {f.integers} {result} to {halves}")


def read(f: Function, pointer: Value, offset: Int, stride: int, count: int) -> Value:
    """`count` elements of f32 that lie `stride` bytes apart, rounded; all lanes at most, zeros in those beyond."""
    if count <= 0:
        return zeros(f)
    if count >= f.lanes:
        return rounded(f, operands.read(f, pointer, offset, stride))
    value = operands.read(f, pointer, offset, stride, count)
    return rounded(f, f.select(f.mask(count), value, f.zero()))


def zeros(f: Function) -> Value:
    """Zeros in bf16."""
    return Value("zeroinitializer", f"<{f.lanes} x i16>")


def store(f: Function, value: Value, pointer: Value, offset: Int = 0) -> None:
    """Store all lanes of a vector of integers of any width."""
    f.emit(f"store {value.type} {value}, ptr {f.at(pointer, offset)}, align 2")


def paired(f: Function, first: Value, second: Value) -> Value:
    """Two vectors of bf16 → their elements in turns, from the first one."""
    return _shuffled(f, first, second, [k // 2 + k % 2 * f.lanes for k in range(2 * f.lanes)])


def joined(f: Function, first: Value, second: Value) -> Value:
    """Two vectors of bf16, one behind the other."""
    return _shuffled(f, first, second, list(range(2 * f.lanes)))


def _shuffled(f: Function, first: Value, second: Value, lanes: list[int]) -> Value:
    order = ", ".join(f"i32 {k}" for k in lanes)
    text = f"shufflevector {first.type} {first}, {second.type} {second}, <{len(lanes)} x i32> <{order}>"
    return f.value(f"<{len(lanes)} x i16>", text)

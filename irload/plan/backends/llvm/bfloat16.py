"""Rounding vectors of f32 to bf16: to nearest, ties to even. NaN stays NaN."""

from __future__ import annotations

from collections.abc import Sequence

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


def rounded_pair(f: Function, first: Value, second: Value) -> Value:
    """Two vectors of f32, one behind the other, as bf16 in lanes of 16 bits."""
    if "avx512bf16" not in f.target.features:
        return joined(f, rounded(f, first), rounded(f, second))
    narrow, halves = f"<{2 * f.lanes} x bfloat>", f"<{2 * f.lanes} x i16>"
    name = f"@llvm.x86.avx512bf16.cvtne2ps2bf16.{f.lanes * 32}"
    short = f.value(narrow, f"call {narrow} {name}({f.vector} {second}, {f.vector} {first})")
    return f.value(halves, f"bitcast {narrow} {short} to {halves}")


def widened(f: Function, halves: Value) -> Value:
    """Lanes of 16 bits as f32."""
    words = f.value(f.integers, f"zext {halves.type} {halves} to {f.integers}")
    bits = f.value(f.integers, f"shl {f.integers} {words}, splat (i32 16)")
    return f.value(f.vector, f"bitcast {f.integers} {bits} to {f.vector}")


def load(f: Function, pointer: Value, offset: Int = 0, count: int | None = None) -> Value:
    """`count` elements beside each other as f32, by default all lanes; those beyond are 0."""
    return widened(f, load_bits(f, pointer, offset, count))


def load_bits(f: Function, pointer: Value, offset: Int = 0, count: int | None = None) -> Value:
    """The same as they are stored."""
    halves, place = f"<{f.lanes} x i16>", f.at(pointer, offset)
    if count is None or count >= f.lanes:
        return f.value(halves, f"load {halves}, ptr {place}, align 2")
    name = f"@llvm.masked.load.v{f.lanes}i16.p0"
    arguments = f"ptr {place}, i32 2, {f.booleans} {f.mask(count)}, {halves} zeroinitializer"
    return f.value(halves, f"call {halves} {name}({arguments})")


def load_scalar(f: Function, pointer: Value, offset: Int = 0) -> Value:
    """One element as f32."""
    bits = f.value("i16", f"load i16, ptr {f.at(pointer, offset)}, align 2")
    word = f.value("i32", f"zext i16 {bits} to i32")
    return f.value("float", f"bitcast i32 {f.value('i32', f'shl i32 {word}, 16')} to float")


def write(f: Function, value: Value, pointer: Value, offset: Int, stride: int, count: int | None = None) -> None:
    """Round a vector of f32 and store `count` lanes, by default all, `stride` bytes apart."""
    halves = rounded(f, value)
    if stride == BYTES:
        store_lanes(f, halves, pointer, offset, count)
    else:
        place = f.at(pointer, offset)
        for lane in range(count or f.lanes):
            bits = f.value("i16", f"extractelement {halves.type} {halves}, i64 {lane}")
            f.emit(f"store i16 {bits}, ptr {f.at(place, lane * stride)}, align 2")


def zeros(f: Function) -> Value:
    """Zeros in bf16."""
    return Value("zeroinitializer", f"<{f.lanes} x i16>")


def store(f: Function, value: Value, pointer: Value, offset: Int = 0) -> None:
    """Store all lanes of a vector of integers of any width."""
    f.emit(f"store {value.type} {value}, ptr {f.at(pointer, offset)}, align 2")


def store_lanes(f: Function, halves: Value, pointer: Value, offset: Int = 0, count: int | None = None) -> None:
    """Store `count` of as many lanes of 16 bits as a vector of f32 has, by default all."""
    if count is None or count >= f.lanes:
        store(f, halves, pointer, offset)
        return
    name, place = f"@llvm.masked.store.v{f.lanes}i16.p0", f.at(pointer, offset)
    f.emit(f"call void {name}({halves.type} {halves}, ptr {place}, i32 2, {f.booleans} {f.mask(count)})")


def store_first(f: Function, halves: Value, pointer: Value, offset: Int, count: int) -> None:
    """Store `count` of the lanes of a vector of any length."""
    if count == lanes_of(halves):
        store(f, halves, pointer, offset)
        return
    for first in range(0, count, f.lanes):
        part = _shuffled(f, halves, halves, list(range(first, first + f.lanes)))
        store_lanes(f, part, pointer, f.add(offset, first * BYTES), count - first)


def lanes_of(halves: Value) -> int:
    """The lanes of a vector of bf16."""
    return int(halves.type[1:].split()[0])


def interleaved(f: Function, vectors: Sequence[Value]) -> Value:
    """A power of 2 of vectors → their first elements, their second ones…."""
    while len(vectors) > 1:
        half = len(vectors) // 2
        vectors = [paired(f, a, b) for a, b in zip(vectors[:half], vectors[half:], strict=True)]
    return vectors[0]


def paired(f: Function, first: Value, second: Value) -> Value:
    """Two vectors of bf16 → their elements in turns, from the first one."""
    lanes = lanes_of(first)
    return _shuffled(f, first, second, [k // 2 + k % 2 * lanes for k in range(2 * lanes)])


def joined(f: Function, first: Value, second: Value) -> Value:
    """Two vectors of bf16, one behind the other."""
    return _shuffled(f, first, second, list(range(2 * f.lanes)))


def _shuffled(f: Function, first: Value, second: Value, lanes: list[int]) -> Value:
    order = ", ".join(f"i32 {k}" for k in lanes)
    text = f"shufflevector {first.type} {first}, {second.type} {second}, <{len(lanes)} x i32> <{order}>"
    return f.value(f"<{len(lanes)} x i16>", text)

"""Operands of expressions, read for one vector of the output by their own strides."""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.backends.llvm import bfloat16
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.elements import F32, SIZES


def read(f: Function, pointer: Value, offset: Int, stride: int, count: int | None = None, element: str = F32) -> Value:
    """`count` elements (all lanes by default) that lie `stride` bytes apart, as f32: one for all lanes where that is 0.

    What is beyond `count` is unspecified, and not read.
    """
    if stride == 0:
        return f.splat(_scalar(f, f.at(pointer, offset), 0, element))
    if stride == SIZES[element]:
        return f.load(pointer, offset, count) if element == F32 else bfloat16.load(f, pointer, offset, count)
    vector = f.zero()
    place = f.at(pointer, offset)
    for lane in range(count or f.lanes):
        scalar = _scalar(f, place, lane * stride, element)
        vector = f.value(f.vector, f"insertelement {f.vector} {vector}, float {scalar}, i64 {lane}")
    return vector


def write(
    f: Function,
    value: Value,
    pointer: Value,
    offset: Int,
    stride: int,
    count: int | None = None,
    element: str = F32,
) -> None:
    """Store `count` lanes `stride` bytes apart."""
    if element != F32:
        bfloat16.write(f, value, pointer, offset, stride, count)
        return
    if stride == SIZES[F32]:
        f.store(value, pointer, offset, count)
        return
    place = f.at(pointer, offset)
    for lane in range(count or f.lanes):
        f.store_scalar(f.value("float", f"extractelement {f.vector} {value}, i64 {lane}"), place, lane * stride)


def write_row(
    f: Function, values: Sequence[Value], pointer: Value, offset: Int, stride: int, count: int, element: str
) -> None:
    """Store `count` lanes of vectors that follow each other. Two that are whole are rounded to bf16 together."""
    for first in range(0, len(values), 2):
        pair, start = values[first : first + 2], first * f.lanes
        place = f.add(offset, start * stride)
        if element != F32 and stride == SIZES[element] and start + 2 * f.lanes <= count:
            bfloat16.store(f, bfloat16.rounded_pair(f, *pair), pointer, place)
            continue
        for k, value in enumerate(pair):
            left = min(count - start - k * f.lanes, f.lanes)
            write(f, value, pointer, f.add(place, k * f.lanes * stride), stride, left, element)


def read_halves(f: Function, pointer: Value, offset: Int, count: int) -> Value:
    """`count` elements of f16 that lie beside each other, at any address, as a vector of so many f32."""
    halves, wide = f"<{count} x half>", f"<{count} x float>"
    loaded = f.value(halves, f"load {halves}, ptr {f.at(pointer, offset)}, align 1")
    return f.value(wide, f"fpext {halves} {loaded} to {wide}")


def read_rounded(f: Function, pointer: Value, offset: Int, stride: int, count: int, element: str = F32) -> Value:
    """`count` elements that lie `stride` bytes apart, in bf16; all lanes at most, zeros in those beyond."""
    if count <= 0:
        return bfloat16.zeros(f)
    if element != F32 and stride == SIZES[element]:
        return bfloat16.load_bits(f, pointer, offset, count)
    if count >= f.lanes:
        return bfloat16.rounded(f, read(f, pointer, offset, stride, element=element))
    value = read(f, pointer, offset, stride, count, element)
    return bfloat16.rounded(f, f.select(f.mask(count), value, f.zero()))


def _scalar(f: Function, pointer: Value, offset: int, element: str) -> Value:
    return f.load_scalar(pointer, offset) if element == F32 else bfloat16.load_scalar(f, pointer, offset)


def read_booleans(f: Function, pointer: Value, offset: Int, stride: int, count: int) -> Value:
    """A vector of i1 from `count` bytes, 0 or 1, that lie `stride` bytes apart; beyond them false."""
    kind = f"<{f.lanes} x i8>"
    place = f.at(pointer, offset)
    if stride == 1 and count == f.lanes:
        found = f.value(kind, f"load {kind}, ptr {place}, align 1")
    else:
        found = Value("zeroinitializer", kind)
        for lane in range(count):
            byte = f.value("i8", f"load i8, ptr {f.at(place, lane * stride)}, align 1")
            found = f.value(kind, f"insertelement {kind} {found}, i8 {byte}, i64 {lane}")
    return f.value(f.booleans, f"icmp ne {kind} {found}, zeroinitializer")

"""Operands of expressions, read for one vector of the output by their own strides."""

from __future__ import annotations

from irload.plan.backends.llvm.builder import Function, Int, Value


def read(f: Function, pointer: Value, offset: Int, stride: int, count: int | None = None) -> Value:
    """`count` elements (all lanes by default) that lie `stride` bytes apart: one for all lanes where that is 0.

    What is beyond `count` is unspecified, and not read.
    """
    if stride == 0:
        return f.broadcast(pointer, offset)
    if stride == 4:
        return f.load(pointer, offset, count)
    vector = f.zero()
    place = f.at(pointer, offset)
    for lane in range(count or f.lanes):
        scalar = f.load_scalar(place, lane * stride)
        vector = f.value(f.vector, f"insertelement {f.vector} {vector}, float {scalar}, i64 {lane}")
    return vector


def write(f: Function, value: Value, pointer: Value, offset: Int, stride: int, count: int | None = None) -> None:
    """Store `count` lanes `stride` bytes apart."""
    if stride == 4:
        f.store(value, pointer, offset, count)
        return
    place = f.at(pointer, offset)
    for lane in range(count or f.lanes):
        f.store_scalar(f.value("float", f"extractelement {f.vector} {value}, i64 {lane}"), place, lane * stride)


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

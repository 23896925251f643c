"""Runs of bytes, copied vector by vector, or of f16, widened. Places: where a run goes to, and where it lies.

Where there is but the first of them, the run is set to zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernels.loops import repeat
from irload.plan.backends.llvm.operands import read_halves

UNROLLED = 8
"""Vectors that are copied without a loop."""


def move_run(f: Function, places: Sequence[Value], size: int) -> None:
    """Copy `size` bytes, at least one."""
    width = f.target.bytes
    whole = size // width
    if whole > UNROLLED:
        f.loop(0, whole, 1, lambda at, _: move(f, places, f.multiply(at, width), width))
    else:
        for k in range(whole):
            move(f, places, k * width, width)
    if size % width:
        move_rest(f, places, size, width)


def widen_run(f: Function, places: Sequence[Value], size: int) -> None:
    """`size` elements of f16, at least one, as f32."""

    def some(at: Int, count: int) -> None:
        value: Value | str = "zeroinitializer"
        if len(places) > 1:
            value = read_halves(f, places[1], f.multiply(at, 2), count)
        f.emit(f"store <{count} x float> {value}, ptr {f.at(places[0], f.multiply(at, 4))}, align 4")

    whole = size // f.lanes * f.lanes
    repeat(f, 0, whole, f.lanes, lambda at: some(at, f.lanes))
    if size > whole > 0:
        some(size - f.lanes, f.lanes)
    elif size > whole:
        repeat(f, 0, size, 1, lambda at: some(at, 1))


def move(f: Function, places: Sequence[Value], offset: Int, nbytes: int) -> None:
    """Copy a power of two of bytes."""
    kind = f"<{nbytes} x i8>"
    value: Value | str = "zeroinitializer"
    if len(places) > 1:
        value = f.value(kind, f"load {kind}, ptr {f.at(places[1], offset)}, align 1")
    f.emit(f"store {kind} {value}, ptr {f.at(places[0], offset)}, align 1")


def move_rest(f: Function, places: Sequence[Value], size: int, width: int) -> None:
    """Copy the end of a run of `size` bytes, behind whole vectors: by one vector that overlaps, or by two smaller."""
    if size >= width:
        move(f, places, size - width, width)
        return
    half = 1 << (size.bit_length() - 1)
    move(f, places, 0, half)
    if size > half:
        move(f, places, size - half, half)

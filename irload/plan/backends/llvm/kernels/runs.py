"""Copies contiguous runs of bytes by vectors, or widens runs of f16. `addresses`: of target and source.

Without a source, the target is set to zero. Runs whose length is read at run time have at least one vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer
from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernels.loops import repeat
from irload.plan.backends.llvm.operands import read_halves


def move_run(f: Function, addresses: Sequence[Pointer], size: AnyInt) -> None:
    """Copy `size` bytes, at least one."""
    width = f.target.bytes
    if isinstance(size, int) and size < width:
        move_short(f, addresses, size)
    else:
        for at in _each_vector(f, size, width):
            move(f, addresses, at, width)


def widen_run(f: Function, addresses: Sequence[Pointer], size: AnyInt) -> None:
    """Widen `size` elements of f16, at least one, to f32."""
    short = isinstance(size, int) and size < f.lanes
    count = 1 if short else f.lanes
    for at in repeat(f, 0, size) if short else _each_vector(f, size, f.lanes):
        value = f.zero(F32, count) if len(addresses) == 1 else read_halves(f, addresses[1], at * 2, count)
        f.store(value, addresses[0], at * 4)


def move(f: Function, addresses: Sequence[Pointer], offset: AnyInt, nbytes: int) -> None:
    """Copy `nbytes` bytes, a power of two, at an offset."""
    target, *source = addresses
    run = f.load_packed(source[0], offset, "i8", nbytes) if source else f.zero("i8", nbytes)
    f.store(run, target, offset)


def move_short(f: Function, addresses: Sequence[Pointer], size: int) -> None:
    """Copy a run shorter than a vector by one load of a power of two of bytes, or by two loads that overlap."""
    half = 1 << (size.bit_length() - 1)
    move(f, addresses, 0, half)
    if size > half:
        move(f, addresses, size - half, half)


def _each_vector(f: Function, size: AnyInt, width: int) -> Iterator[AnyInt]:
    """The offsets of the whole vectors that cover a run; the last one may overlap the previous one."""
    rest = size % width
    yield from repeat(f, 0, size - rest, width)
    if rest != 0:
        with f.when(f.differ(rest, 0)):
            yield size - width

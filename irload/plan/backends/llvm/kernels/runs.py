"""Copies contiguous runs of bytes by vectors, or widens runs of f16. `addresses`: of target and source.

Without a source, the target is set to zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer
from irload.plan.backends.llvm.elements import F16, F32
from irload.plan.backends.llvm.kernels.loops import either, first_above, repeat


def move_run(f: Function, addresses: Sequence[Pointer], size: AnyInt) -> None:
    """Copy `size` bytes, at least one."""
    width = f.target.bytes
    for is_short in either(f, size < width, True, False):
        if is_short:
            move_short(f, addresses, size, width)
        else:
            for at in _each_vector(f, size, width):
                move(f, addresses, at, width)


def widen_run(f: Function, addresses: Sequence[Pointer], size: AnyInt) -> None:
    """Widen `size` elements of f16, at least one, to f32."""
    for count in either(f, size < f.lanes, 1, f.lanes):
        for at in repeat(f, 0, size) if count == 1 else _each_vector(f, size, f.lanes):
            target, *source = addresses
            value = f.load_packed(source[0], at * 2, F16, count).cast("fpext", F32) if source else f.zero(F32, count)
            f.store(value, target, at * 4)


def move(f: Function, addresses: Sequence[Pointer], offset: AnyInt, nbytes: int) -> None:
    """Copy `nbytes` bytes, a power of two, at an offset."""
    target, *source = addresses
    run = f.load_packed(source[0], offset, "i8", nbytes) if source else f.zero("i8", nbytes)
    f.store(run, target, offset)


def move_short(f: Function, addresses: Sequence[Pointer], size: AnyInt, width: int) -> None:
    """Copy a run of fewer than `width` bytes, a power of two, by two overlapping loads of a power of two of bytes."""
    if isinstance(size, int):
        half = 1 << (size.bit_length() - 1)
        for at in sorted({0, size - half}):
            move(f, addresses, at, half)
        return
    halves = [1 << k for k in range(width.bit_length() - 1)]
    for half in first_above(f, size, [(2 * half, half) for half in halves]):
        move(f, addresses, 0, half)
        move(f, addresses, size - half, half)


def _each_vector(f: Function, size: AnyInt, width: int) -> Iterator[AnyInt]:
    """The offsets of the whole vectors that cover a run; the last one may overlap the previous one."""
    rest = size % width
    yield from repeat(f, 0, size - rest, width)
    if rest != 0:
        with f.when(f.differ(rest, 0)):
            yield size - width

"""Copies that permute the elements of small blocks, such as depth-to-space of channels-last maps.

A block is contiguous in one tensor and consists of a few runs in the other. It is loaded into registers, permuted, and
stored run by run. Copies of single elements would take several cycles per element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from irload.core.size import is_size
from irload.plan.backends.llvm.arguments import moved
from irload.plan.backends.llvm.axes import ANY, Axis, size_of
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.kernels.blocks import LineKernel
from irload.plan.backends.llvm.kernels.loops import offset
from irload.plan.backends.llvm.tuning import COPIED_RUN, PERMUTED_BLOCKS, PERMUTED_BYTES, PERMUTED_RUN
from irload.record import record

INTEGERS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
"""The element types that copies use, by the bytes of an element."""


@record()
class PermutedCopy(LineKernel):
    """Copies blocks of elements of `itemsize` bytes. Pointers: to, from.

    Axes have the strides of the target and the source in bytes. `blocks`: the axis of neighbouring blocks; `inner`: the
    axes of a block. A unit is at most PERMUTED_BLOCKS blocks.

    The code reads the axes between blocks, and the strides between runs. Compiled in are the sizes of the inner axes
    and the strides inside runs.
    """

    blocks: Axis
    inner: tuple[Axis, ...]
    itemsize: int

    @property
    def code(self) -> PermutedCopy:
        contiguous = [_run(self.inner, tensor, self.itemsize) for tensor in (0, 1)]
        inner = tuple(
            Axis(axis.size, tuple(s if axis in run else ANY for s, run in zip(axis.strides, contiguous, strict=True)))
            for axis in self.inner
        )
        return replace(self, outer=(), blocks=Axis(ANY, (ANY, ANY)), inner=inner)

    @property
    def cycles(self) -> float:
        return size_of((*self.outer, self.blocks, *self.inner)) * self.itemsize / 8

    @property
    def parts(self) -> int:
        return -(-self.blocks.size // PERMUTED_BLOCKS)

    def write_part(self, f: Function, given: PermutedCopy, starts: list[Pointer], part: AnyInt) -> None:
        strides, blocks = [axis.strides for axis in given.inner], given.blocks
        for at in f.range(part * PERMUTED_BLOCKS, f.minimum((part + 1) * PERMUTED_BLOCKS, blocks.size)):
            self._copy(f, moved(starts, [at * step for step in blocks.strides]), strides)

    def _copy(self, f: Function, addresses: list[Pointer], strides: Sequence[Sequence[AnyInt]]) -> None:
        target, source = ([along[k] for along in strides] for k in (0, 1))
        element = INTEGERS[self.itemsize]
        runs = list(self._runs(1))
        loaded = [f.load_packed(addresses[1] + offset(source, run[0]), 0, element, len(run)) for run in runs]
        lanes = {at: lane for lane, at in enumerate(at for run in runs for at in run)}
        block = _joined(f, loaded)
        for run in self._runs(0):
            stored = f.shuffle(block, block, [lanes[at] for at in run])
            f.store(stored, addresses[0] + offset(target, run[0]))

    def _runs(self, tensor: int) -> Iterator[list[tuple[int, ...]]]:
        """The positions of the elements of each run of a tensor, in the order of its memory."""
        known = [axis.strides[tensor] != ANY for axis in self.inner]
        spans = [range(axis.size) for axis in self.inner]
        outside = [range(1) if inside else span for inside, span in zip(known, spans, strict=True)]
        within = [span if inside else range(1) for inside, span in zip(known, spans, strict=True)]
        order = [axis.strides[tensor] if inside else 0 for inside, axis in zip(known, self.inner, strict=True)]
        run = sorted(product(*within), key=lambda at: sum(n * s for n, s in zip(at, order, strict=True)))
        for first in product(*outside):
            yield [tuple(a + b for a, b in zip(first, at, strict=True)) for at in run]


def permuted_copy(axes: Sequence[Axis], itemsize: int) -> PermutedCopy | None:
    """The copy of permuted blocks, None if other copies are as fast.

    `axes`: merged, in the order of the target's memory, with the strides of the target and the source.
    """
    together = max((a.size for a in axes if a.strides == (itemsize, itemsize)), default=1)
    if itemsize not in INTEGERS or is_size(together) or together * itemsize >= COPIED_RUN:
        return None
    best: list[Axis] = []
    for tensor in (0, 1):
        inner = _run(axes, tensor, itemsize)
        shortest = min(size_of(_run(inner, other, itemsize)) for other in (0, 1)) * itemsize
        if shortest >= PERMUTED_RUN and size_of(inner) > size_of(best):
            best = inner
    outer = [axis for axis in axes if axis not in best]
    return PermutedCopy(tuple(outer[:-1]), outer[-1], tuple(best), itemsize) if best and outer else None


def _run(axes: Sequence[Axis], tensor: int, itemsize: int) -> list[Axis]:
    """The axes along which a tensor is contiguous, at most PERMUTED_BYTES."""
    run: list[Axis] = []
    nbytes = itemsize
    while True:
        following = [a for a in axes if not is_size(a.strides[tensor]) and a.strides[tensor] == nbytes and a not in run]
        if len(following) != 1 or is_size(following[0].size) or nbytes * following[0].size > PERMUTED_BYTES:
            return run
        run += following
        nbytes *= following[0].size


def _joined(f: Function, vectors: Sequence[Vec]) -> Vec:
    """The concatenation of vectors of equal length, padded to a power of two of vectors."""
    joined = [*vectors]
    while len(joined) & (len(joined) - 1):
        joined.append(joined[-1])
    while len(joined) > 1:
        lanes = range(2 * joined[0].lanes)
        joined = [f.shuffle(a, b, lanes) for a, b in zip(joined[::2], joined[1::2], strict=True)]
    return joined[0]

"""Attention block by block: what all ways to multiply have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Self

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, offsets
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import repeat
from irload.plan.backends.llvm.kernels.score_rows import ScoreRows
from irload.plan.backends.llvm.tile import LINE
from irload.record import record


@record()
class Matrices:
    """Bytes between matrices along each outer axis, between their rows, and between their columns."""

    outer: tuple[int, ...]
    row: int
    column: int

    @staticmethod
    def of(array: Array) -> Matrices:
        """The last two axes of an array."""
        return Matrices(array.strides[:-2], array.strides[-2], array.strides[-1])


@record()
class AttentionBlocks(Kernel):
    """out = softmax(q kᵀ · scale + mask) v. Pointers: q, packed k, packed v, out, and perhaps the mask.

    With `keeps` the mask is boolean, and −∞ stands where it is false.

    A unit is a block of `block` queries, a multiple of the `rows` of a tile; the last block overlaps the one before.
    `keys` and `values` are bytes between the packed matrices along each outer axis.
    """

    lanes: int
    outer: tuple[int, ...]
    shape: tuple[int, int, int, int]
    """Queries, keys, their width, the width of values."""
    q: Matrices
    out: Matrices
    mask: Matrices | None
    keeps: bool
    keys: tuple[int, ...]
    values: tuple[int, ...]
    scale: float
    causal: bool
    rows: int
    block: int

    @property
    def code(self) -> Self:
        return replace(self, outer=tuple(0 if k == 0 else size for k, size in enumerate(self.outer)))

    @property
    def count(self) -> int:
        return prod(self.outer) * self._blocks

    @property
    def _blocks(self) -> int:
        return -(-self.shape[0] // self.block)

    def write(self, function: Function) -> None:
        f = function
        names, steps = ["q", "k", "v", "out"], [self.q.row, 0, 0, self.out.row]
        strides = [self.q.outer, self.keys, self.values, self.out.outer]
        if self.mask is not None:
            names.append("mask")
            steps.append(self.mask.row)
            strides.append(self.mask.outer)
        axes = [Axis(n, tuple(along)) for n, *along in zip(self.outer, *strides, strict=True)]
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(len(names))]
        own = f.module.function("block", [*(f"ptr {n}" for n in names), "ptr scratch", "i64 start"])
        self._write_block(own)

        def unit(index: Value, _: list[Value]) -> None:
            line, b = f.divmod(index, self._blocks)
            start = f.minimum(f.multiply(b, self.block), self.shape[0] - self.block)
            matrices = offsets(f, line, axes, len(pointers))
            rows = [f.multiply(start, step) for step in steps]
            places = [f.at(p, f.add(m, r)) for p, m, r in zip(pointers, matrices, rows, strict=True)]
            f.call("block", [*places, f["scratch"], start])

        self._prepare(f)
        f.loop(f["begin"], f["end"], 1, unit)
        self._complete(f)

    def _score_rows(self, pitch: int, *, coarse: bool = False) -> ScoreRows:
        """The rows of a block, `pitch` bytes apart."""
        mask = None if self.mask is None else (self.mask.row, self.mask.column)
        return ScoreRows(
            self.lanes, self.block, self.shape[1], pitch, self.scale, mask, self.keeps, self.causal, coarse
        )

    def _mask(self, f: Function) -> Value | None:
        """The mask of a block, in the function for one."""
        return None if self.mask is None else f["mask"]

    def _each_group(self, f: Function, columns: int, wide: int, group: Callable[[Int, int], None]) -> None:
        """`group(number, columns)` for each `wide` columns, which are made together; the last one may have fewer."""
        whole, rest = divmod(columns, wide)
        repeat(f, 0, whole, 1, lambda g: group(g, wide))
        if rest:
            group(whole, rest)

    def _prepare(self, f: Function) -> None:
        """Write what a thread does before its first block."""

    def _complete(self, f: Function) -> None:
        """Write what it does after the last one."""

    @abstractmethod
    def _write_block(self, f: Function) -> None:
        """Write the results of one block. All pointers are those of its first row, whose number is `start`."""


def row_pitch(lines: int) -> int:
    """Bytes between rows of so many cache lines: an odd number of lines, so that rows share few sets of the cache."""
    return (lines | 1) * LINE

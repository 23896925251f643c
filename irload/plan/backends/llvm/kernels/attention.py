"""Attention in one kernel: rows of scores stay in the cache from the product with keys to that with values."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Protocol

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, offsets
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary
from irload.plan.backends.llvm.kernels.matmul import PANEL
from irload.plan.backends.llvm.kernels.packing import PackPanels
from irload.plan.backends.llvm.operands import read, read_booleans, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tile import LINE, Level, Row, Tile, tile_shape, write_sums
from irload.plan.backends.llvm.vector_math import exp
from irload.plan.backends.llvm.vectors import Vector
from irload.plan.ir.steps import Attention
from irload.record import record

CACHED = 96 * 1024
"""Bytes of scores that one thread works at."""


class _Step(Protocol):
    """What is done with one vector of a row: gives what is carried on. The `last` one may have fewer keys."""

    def __call__(self, column: Int, carried: Value, *, last: bool) -> Value: ...


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
class Attend(Kernel):
    """out = softmax(q kᵀ · scale + mask) v. Pointers: q, panels of k, panels of v, out, and perhaps the mask.

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
    panels: tuple[int, int]
    """Vectors of a panel of keys, and of values."""
    vectors: tuple[int, int]
    """Vectors of a tile of scores, and of results."""

    @property
    def _blocks(self) -> int:
        return -(-self.shape[0] // self.block)

    @property
    def _pitch(self) -> int:
        """Bytes between rows of scores."""
        return pitch(self.lanes, self.shape[1])

    @property
    def count(self) -> int:
        return prod(self.outer) * self._blocks

    @property
    def cycles(self) -> float:
        queries, keys, width, depth = self.shape
        return prod(self.outer) * queries * keys * ((width + depth) / 2 + 12) / self.lanes

    @property
    def scratch(self) -> int:
        return self.block * (self._pitch + 4)

    def write(self, function: Function) -> None:
        f = function
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(4 + (self.mask is not None))]
        strides = [self.q.outer, self.keys, self.values, self.out.outer]
        steps = [self.q.row, 0, 0, self.out.row]
        if self.mask is not None:
            strides.append(self.mask.outer)
            steps.append(self.mask.row)
        axes = [Axis(n, tuple(along)) for n, *along in zip(self.outer, *strides, strict=True)]
        names = ["q", "k", "v", "out", "mask"][: len(pointers)]
        own = f.module.function("block", [*(f"ptr {n}" for n in names), "ptr scores", "i64 start"])
        self._write_block(own)

        def unit(index: Value, _: list[Value]) -> None:
            line, b = f.divmod(index, self._blocks)
            start = f.minimum(f.multiply(b, self.block), self.shape[0] - self.block)
            matrices = offsets(f, line, axes, len(pointers))
            rows = [f.multiply(start, step) for step in steps]
            places = [f.at(p, f.add(m, r)) for p, m, r in zip(pointers, matrices, rows, strict=True)]
            f.call("block", [*places, f["scratch"], start])

        f.loop(f["begin"], f["end"], 1, unit)

    def _write_block(self, f: Function) -> None:
        self._write_scores(f)
        sums = f.at(f["scores"], self.block * self._pitch)
        f.loop(0, self.block, 1, lambda i, _: self._softmax(f, i, sums))
        self._write_results(f, sums)

    def _write_scores(self, f: Function) -> None:
        """The scores of all rows of the block: q kᵀ · scale + mask."""
        _, keys, width, _ = self.shape
        wide = self.vectors[0] * self.lanes

        def group(g: Int, columns: int) -> None:
            panels = f.at(f["k"], f.multiply(g, wide * width * 4))
            vectors = -(-columns // self.lanes)
            tile = Tile(self._tile_rows(self.q.row), vectors, self.panels[0], (Level(width, self.q.column),))

            def rows(t: Value, _: list[Value]) -> None:
                found = write_sums(f, tile, f.at(f["q"], f.multiply(t, self.rows * self.q.row)), panels, {})
                place = f.at(f["scores"], f.add(f.multiply(t, self.rows * self._pitch), f.multiply(g, wide * 4)))
                for k, value in enumerate(found):
                    r, v = divmod(k, vectors)
                    score = Vector(f, value) * self.scale if self.scale != 1 else Vector(f, value)
                    if self.mask is not None:
                        count = min(self.lanes, columns - v * self.lanes)
                        line = f.multiply(f.add(f.multiply(t, self.rows), r), self.mask.row)
                        at = f.add(line, f.multiply(f.add(f.multiply(g, wide), v * self.lanes), self.mask.column))
                        score = self._masked(f, score, at, self.mask.column, count)
                    f.store(score.value, place, r * self._pitch + v * self.lanes * 4)

            f.loop(0, self.block // self.rows, 1, rows)

        self._groups(f, keys, wide, group)

    def _masked(self, f: Function, score: Vector, at: Int, stride: int, count: int) -> Vector:
        """Scores with the mask added, or kept where it says so."""
        if self.keeps:
            return score.where(read_booleans(f, f["mask"], at, stride, count), -np.inf)
        return score + Vector(f, read(f, f["mask"], at, stride, count))

    def _write_results(self, f: Function, sums: Value) -> None:
        """Rows of scores times v, over the sums of the rows."""
        _, keys, _, depth = self.shape
        wide = self.vectors[1] * self.lanes

        def group(g: Int, columns: int) -> None:
            panels = f.at(f["v"], f.multiply(g, wide * keys * 4))
            vectors = -(-columns // self.lanes)
            tile = Tile(self._tile_rows(self._pitch), vectors, self.panels[1], (Level(keys, 4),))

            def rows(t: Value, _: list[Value]) -> None:
                first = f.multiply(t, self.rows)
                found = write_sums(f, tile, f.at(f["scores"], f.multiply(first, self._pitch)), panels, {})
                columns_at = f.multiply(g, wide * self.out.column)
                place = f.at(f["out"], f.add(f.multiply(first, self.out.row), columns_at))
                for k, value in enumerate(found):
                    r, v = divmod(k, vectors)
                    total = f.broadcast(sums, f.multiply(f.add(first, r), 4))
                    count = min(self.lanes, columns - v * self.lanes)
                    at = r * self.out.row + v * self.lanes * self.out.column
                    write(f, f.arithmetic("fdiv", value, total), place, at, self.out.column, count)

            f.loop(0, self.block // self.rows, 1, rows)

        self._groups(f, depth, wide, group)

    def _groups(self, f: Function, columns: int, wide: int, group: Callable[[Int, int], None]) -> None:
        """Groups of columns that one tile makes; the last one may have fewer."""
        whole, rest = divmod(columns, wide)
        if whole:
            f.loop(0, whole, 1, lambda g, _: group(g, wide))
        if rest:
            group(whole, rest)

    def _tile_rows(self, pitch: int) -> tuple[Row, ...]:
        return tuple(Row(r * pitch) for r in range(self.rows))

    def _softmax(self, f: Function, i: Value, sums: Value) -> None:
        """Replace scores by exp(score − largest), and keep the sum of each row."""
        keys = self.shape[1]
        row = f.at(f["scores"], f.multiply(i, self._pitch))
        visible = f.minimum(f.add(f.add(f["start"], i), 1), keys)
        whole, rest = divmod(keys, self.lanes)
        lowest = f.number(-np.inf)

        def seen(column: Int, value: Value, otherwise: Value, *, last: bool) -> Value:
            if self.causal:
                return f.select(self._below(f, column, visible), value, otherwise)
            return f.select(f.mask(rest), value, otherwise) if last else value

        def largest(column: Int, carried: Value, *, last: bool) -> Value:
            value = seen(column, f.load(row, f.multiply(column, 4)), lowest, last=last)
            return f.select(f.compare_floats("ogt", value, carried), value, carried)

        def power(column: Int, carried: Value, *, last: bool) -> Value:
            place = f.multiply(column, 4)
            value = exp(Vector(f, f.load(row, place)) - Vector(f, top)).value
            value = seen(column, value, f.zero(), last=last)
            f.store(value, row, place)
            return f.arithmetic("fadd", carried, value)

        def sweep(step: _Step, start: Value) -> Value:
            def each(index: Value, carried: list[Value]) -> list[Value]:
                return [step(f.multiply(index, self.lanes), carried[0], last=False)]

            (found,) = f.loop(0, whole, 1, each, [start]) if whole else (start,)
            return step(whole * self.lanes, found, last=True) if rest else found

        top = f.splat(f.reduce("fmax", sweep(largest, lowest)))
        f.store_scalar(f.reduce("fadd", sweep(power, f.zero())), sums, f.multiply(i, 4))

    def _below(self, f: Function, column: Int, limit: Int) -> Value:
        """The lanes whose column lies below the limit."""
        vector = f"<{self.lanes} x i64>"
        lanes = Value(f"<{', '.join(f'i64 {k}' for k in range(self.lanes))}>", vector)
        return f.value(f.booleans, f"icmp slt {vector} {lanes}, {self._splat(f, f.subtract(limit, column), vector)}")

    def _splat(self, f: Function, number: Int, vector: str) -> Value:
        first = f.value(vector, f"insertelement {vector} poison, i64 {number}, i64 0")
        return f.value(vector, f"shufflevector {vector} {first}, {vector} poison, {f.integers} zeroinitializer")


def select_attention(step: Attention, selector: Selector) -> list[Launch]:
    """Keys and values are packed, then each block of queries meets all of them."""
    q, k, v, *masks = (selector.array(value) for value in step.inputs)
    out = selector.array(step.output)
    *lead, queries, depth = out.shape
    keys, width = k.shape[-2:]
    q = np.broadcast_to(q, (*lead, queries, width))
    mask = np.broadcast_to(masks[0], (*lead, queries, keys)) if masks else None
    rows, block = blocks(selector.target, q.strides[-2], (queries, keys), prod(lead), selector.threads)
    packed_keys, key_strides, key_place = _packed(selector, k.swapaxes(-1, -2), len(lead))
    packed_values, value_strides, value_place = _packed(selector, v, len(lead))
    attend = Attend(
        selector.target.lanes,
        tuple(lead),
        (queries, keys, width, depth),
        Matrices.of(q),
        Matrices.of(out),
        None if mask is None else Matrices.of(mask),
        mask is not None and mask.dtype == np.bool_,
        key_strides,
        value_strides,
        step.scale,
        step.causal,
        rows,
        block,
        (packed_keys.panel, packed_values.panel),
        (
            tile_shape(selector.target, rows, keys, packed_keys.panel)[1],
            tile_shape(selector.target, rows, depth, packed_values.panel)[1],
        ),
    )
    return [
        selector.launch(packed_keys, [k, key_place]),
        selector.launch(packed_values, [v, value_place]),
        selector.launch(attend, [q, key_place, value_place, out, *([] if mask is None else [mask])]),
    ]


def pitch(lanes: int, keys: int) -> int:
    """Bytes between rows of scores: whole vectors, and an odd number of cache lines, so that rows share few sets."""
    return (-(-max(keys, lanes) * 4 // LINE) | 1) * LINE


def blocks(target: Target, stride: int, shape: tuple[int, int], matrices: int, threads: int) -> tuple[int, int]:
    """The rows of a tile, and those of a block: as many as the cache holds, and enough blocks for all threads.

    `stride`: bytes between queries; `shape`: how many queries and keys there are in each of the matrices.
    """
    queries, keys = shape
    rows, _ = tile_shape(target, queries, keys, PANEL, stride)
    most = min(queries // rows, max(1, CACHED // (rows * pitch(target.lanes, keys))))
    while most > 1 and matrices * -(-queries // (rows * most)) < 2 * threads:
        most -= 1
    return rows, rows * most


def _packed(selector: Selector, matrix: Array, rank: int) -> tuple[PackPanels, tuple[int, ...], Temporary]:
    """How matrices are packed, the bytes between them along all outer axes of the output, and where."""
    *lead, length, columns = matrix.shape
    lanes = selector.target.lanes
    panel = min(PANEL, -(-columns // lanes))
    own = tuple(n if stride else 1 for n, stride in zip(lead, matrix.strides, strict=False))
    kept = tuple(k for k, n in enumerate(own) if n > 1)
    packing = PackPanels(
        lanes,
        tuple(own[k] for k in kept),
        tuple(matrix.strides[k] for k in kept),
        (length, columns),
        (matrix.strides[-2], matrix.strides[-1]),
        panel,
    )
    each = -(-columns // (panel * lanes)) * panel * lanes * length * 4
    strides = tuple(prod(own[k + 1 :]) * each if n > 1 else 0 for k, n in enumerate(own))
    return packing, (*(0,) * (rank - len(lead)), *strides), selector.temporary(packing.nbytes)

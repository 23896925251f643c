"""The tile registers of AMX, and the few instructions on them; for tests also written in other instructions.

A tile is 16 rows of 64 bytes at most. Each thread configures its tiles before it uses them, and releases them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from irload.plan.backends.llvm.builder import Function, Int, Value

ROWS = 16
"""The most rows of a tile: outputs of f32 in a row of sums, pairs of bf16 in a row of data."""
BYTES = 64
"""Of a row."""
NBYTES = ROWS * BYTES
"""Of a tile."""
DEPTH = 32
"""The bf16 of a row of data."""
STATE = 64 + 8 * NBYTES
"""The bytes that hold the tiles of a thread where they are emulated: their configuration, then their rows."""


def configuration(shapes: Sequence[tuple[int, int]]) -> list[int]:
    """What the processor reads to configure the first tiles: of each its rows, and their bytes. As eight i64."""
    rows, widths = ([*numbers, *[0] * (16 - len(shapes))] for numbers in zip(*shapes, strict=True))
    return list(struct.unpack("<8q", struct.pack("<BB14x16H16B", 1, 0, *widths, *rows)))


class Tiles:
    """The tiles as one function uses them. `state`: STATE bytes, which only an emulated target touches."""

    def __init__(self, f: Function, state: Value) -> None:
        self._f = f
        self._state = state
        self._emulated = f.target.emulated

    def configure(self, shapes: Sequence[tuple[int, int]]) -> None:
        """Set rows, and their bytes, of the first tiles, and all tiles to zero. The same in all of a module."""
        table = self._f.module.table("configuration", configuration(shapes))
        if self._emulated:
            self._clear(self._state, STATE)
            self._f.store(self._f.load(table), self._state)
        else:
            self._f.emit(f"call void @llvm.x86.ldtilecfg(ptr {table})")

    def release(self) -> None:
        """Give the tiles back: the system then saves no more of them."""
        if self._emulated:
            self._clear(self._state, STATE)
        else:
            self._f.emit("call void @llvm.x86.tilerelease()")

    def zero(self, tile: int) -> None:
        """Set a tile to zero."""
        if self._emulated:
            self._clear(self._tile(tile), NBYTES)
        else:
            self._f.emit(f"call void @llvm.x86.tilezero(i8 {tile})")

    def load(self, tile: int, pointer: Value, stride: Int, *, once: bool = False) -> None:
        """Load a tile from rows `stride` bytes apart. `once`: they need not stay in the first level of the cache."""
        if self._emulated:
            self._copy(tile, pointer, stride, to_tile=True)
        else:
            name = "tileloaddt164" if once else "tileloadd64"
            self._f.emit(f"call void @llvm.x86.{name}(i8 {tile}, ptr {pointer}, i64 {stride})")

    def store(self, tile: int, pointer: Value, stride: Int) -> None:
        """Store a tile to rows `stride` bytes apart."""
        if self._emulated:
            self._copy(tile, pointer, stride, to_tile=False)
        else:
            self._f.emit(f"call void @llvm.x86.tilestored64(i8 {tile}, ptr {pointer}, i64 {stride})")

    def dot(self, sums: int, data: int, weights: int) -> None:
        """sums[r, o] += Σ data[r, k] · weights[k, o]: bf16 to f32, pairs of elements beside each other."""
        if self._emulated:
            self._dot(sums, data, weights)
        else:
            self._f.emit(f"call void @llvm.x86.tdpbf16ps(i8 {sums}, i8 {data}, i8 {weights})")

    # Emulation, for vectors as wide as a row

    def _clear(self, pointer: Value, nbytes: int) -> None:
        f = self._f

        def row(at: Value, _: list[Value]) -> None:
            f.store(f.zero(), pointer, at)

        f.loop(0, nbytes, BYTES, row)

    def _tile(self, tile: int) -> Value:
        return self._f.value("ptr", f"getelementptr i8, ptr {self._state}, i64 {64 + tile * NBYTES}")

    def _configured(self, tile: int) -> tuple[Value, Value]:
        """The rows of a tile, and the bytes of each."""
        f, state = self._f, self._state
        rows = f.value("i8", f"load i8, ptr {f.at(state, 48 + tile)}")
        width = f.value("i16", f"load i16, ptr {f.at(state, 16 + 2 * tile)}")
        return f.value("i64", f"zext i8 {rows} to i64"), f.value("i64", f"zext i16 {width} to i64")

    def _copy(self, tile: int, pointer: Value, stride: Int, *, to_tile: bool) -> None:
        f, own = self._f, self._tile(tile)
        rows, width = self._configured(tile)

        def row(k: Value, _: list[Value]) -> None:
            inner, outer = f.at(own, f.multiply(k, BYTES)), f.at(pointer, f.multiply(k, stride))
            target, source = (inner, outer) if to_tile else (outer, inner)

            def word(at: Value, _: list[Value]) -> None:
                f.store_scalar(f.load_scalar(source, at), target, at)

            f.loop(0, width, 4, word)

        f.loop(0, rows, 1, row)

    def _dot(self, sums: int, data: int, weights: int) -> None:
        f = self._f
        rows, _ = self._configured(sums)
        _, width = self._configured(data)
        result, left, right = (self._tile(tile) for tile in (sums, data, weights))

        def widened(words: Value, *, high: bool) -> Value:
            """One bf16 of each pair."""
            how = (
                f"and {f.integers} {words}, splat (i32 -65536)" if high else f"shl {f.integers} {words}, splat (i32 16)"
            )
            return f.value(f.vector, f"bitcast {f.integers} {f.value(f.integers, how)} to {f.vector}")

        def words(vector: Value) -> Value:
            return f.value(f.integers, f"bitcast {f.vector} {vector} to {f.integers}")

        def row(r: Value, _: list[Value]) -> None:
            own = f.at(left, f.multiply(r, BYTES))

            def pair(at: Value, carried: list[Value]) -> list[Value]:
                x, w = words(f.broadcast(own, at)), words(f.load(right, f.multiply(at, BYTES // 4)))
                return [
                    f.fma(widened(x, high=high), widened(w, high=high), total)
                    for high, total in zip((False, True), carried, strict=True)
                ]

            even, odd = f.loop(0, width, 4, pair, [f.zero(), f.zero()])
            place = f.at(result, f.multiply(r, BYTES))
            f.store(f.arithmetic("fadd", f.load(place), f.arithmetic("fadd", even, odd)), place)

        f.loop(0, rows, 1, row)

"""The tile registers of AMX, emulated by vectors for tests on other processors.

A tile has up to 16 rows of up to 64 bytes. Each thread configures its tiles before their first use, and releases them
after the last.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from irload.plan.backends.llvm import intrinsics
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer
from irload.plan.backends.llvm.dot import TILES, Dot

ROWS = 16
"""The maximum number of rows of a tile, and of words per row: sums, or pairs of bf16."""
BYTES = 64
"""The maximum bytes of a row."""
NBYTES = ROWS * BYTES
"""The maximum bytes of a tile."""
DEPTH = 32
"""The number of bf16 in a row of data or in a column of weights."""
STATE = 64 + 8 * NBYTES
"""The bytes of the emulated tiles of a thread: their configuration, then their rows."""


def configuration(shapes: Sequence[tuple[int, int]]) -> list[int]:
    """The operand of ldtilecfg as eight i64. `shapes`: for each tile, rows and bytes per row."""
    rows, widths = ([*numbers, *[0] * (16 - len(shapes))] for numbers in zip(*shapes, strict=True))
    return list(struct.unpack("<8q", struct.pack("<BB14x16H16B", 1, 0, *widths, *rows)))


class Tiles:
    """Emits instructions on tiles into a function. `state`: STATE bytes of memory, used only by emulated targets."""

    def __init__(self, f: Function, state: Pointer, dot: Dot = TILES) -> None:
        if dot.registers is None:
            raise ValueError(f"{dot.name} does not multiply tiles")
        self._f = f
        self._multiply, self._multiply_row = dot.registers, dot.multiply
        self._state = state
        self._emulated = f.target.emulated

    def configure(self, shapes: Sequence[tuple[int, int]]) -> None:
        """Set rows and bytes per row of the first tiles, and clear all tiles. A module has a single configuration."""
        self.configure_from(self._f.table("configuration", configuration(shapes)))

    def configure_from(self, table: Pointer) -> None:
        """Configure the tiles by a `configuration` in memory."""
        if self._emulated:
            self._clear(self._state, STATE)
            self._f.store(self._f.load(table), self._state)
        else:
            intrinsics.on_tiles(self._f, "ldtilecfg", table)

    def release(self) -> None:
        """Release the tiles, so that the system need not save them at context switches."""
        if self._emulated:
            self._clear(self._state, STATE)
        else:
            intrinsics.on_tiles(self._f, "tilerelease")

    def zero(self, tiles: int) -> None:
        """Set the first `tiles` tiles to zero."""
        for tile in range(tiles):
            if self._emulated:
                self._clear(self._tile(tile), NBYTES)
            else:
                intrinsics.on_tiles(self._f, "tilezero", tile)

    def load(self, tile: int, pointer: Pointer, stride: AnyInt, *, once: bool = False) -> None:
        """Load a tile from rows `stride` bytes apart. `once`: a non-temporal load, for rows not read again soon."""
        if self._emulated:
            self._copy(tile, pointer, stride, to_tile=True)
        else:
            name = "tileloaddt164" if once else "tileloadd64"
            intrinsics.on_tiles(self._f, name, tile, pointer, self._f.integer(stride))

    def store(self, tile: int, pointer: Pointer, stride: AnyInt) -> None:
        """Store a tile to rows `stride` bytes apart."""
        if self._emulated:
            self._copy(tile, pointer, stride, to_tile=False)
        else:
            intrinsics.on_tiles(self._f, "tilestored64", tile, pointer, self._f.integer(stride))

    def store_block(self, height: int, width: int, pointer: Pointer, strip: AnyInt, stride: AnyInt) -> None:
        """Store the first tiles, [height, width], to strips of rows `strip` bytes apart. `stride`: between rows."""
        for a in range(height):
            for b in range(width):
                self.store(a * width + b, pointer + (a * strip + b * BYTES), stride)

    def dot(self, sums: int, data: int, weights: int) -> None:
        """sums[r, o] += Σ data[r, k] · weights[k, o], where weights are stored as words of consecutive k."""
        if self._emulated:
            self._dot(sums, data, weights)
        else:
            self._multiply(self._f, sums, data, weights)

    # Emulation, for vectors as wide as a row

    def _clear(self, pointer: Pointer, nbytes: int) -> None:
        f = self._f
        for at in f.range(0, nbytes, BYTES):
            f.store(f.zero(), pointer, at)

    def _tile(self, tile: int) -> Pointer:
        return self._state + (64 + tile * NBYTES)

    def _configured(self, tile: int) -> tuple[AnyInt, AnyInt]:
        """The configured rows of a tile, and the bytes per row."""
        return self._f.load_int(self._state, 48 + tile, "i8"), self._f.load_int(self._state, 16 + 2 * tile, "i16")

    def _copy(self, tile: int, pointer: Pointer, stride: AnyInt, *, to_tile: bool) -> None:
        f, address = self._f, self._tile(tile)
        rows, width = self._configured(tile)
        for k in f.range(0, rows):
            inner, outer = address + k * BYTES, pointer + k * stride
            target, source = (inner, outer) if to_tile else (outer, inner)
            for at in f.range(0, width, 4):
                f.store_scalar(f.load_scalar(source, at), target, at)

    def _dot(self, sums: int, data: int, weights: int) -> None:
        f = self._f
        rows, _ = self._configured(sums)
        _, width = self._configured(data)
        result, left, right = (self._tile(tile) for tile in (sums, data, weights))
        for r in f.range(0, rows):
            row, target = left + r * BYTES, result + r * BYTES
            total = [f.load(target)]
            for at in f.range(0, width, 4, total):
                x, w = f.broadcast(row, at), f.load(right, at * (BYTES // 4))
                total[0] = self._multiply_row(f, total[0], x, w)
            f.store(total[0], target)

"""The layouts of packed operands, as data."""

from __future__ import annotations

from math import prod
from typing import TypeVar

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.elements import BF16, DTYPES, F32, SIZES, WORD
from irload.plan.backends.llvm.weight_memory import weight_bytes
from irload.record import record

Index = TypeVar("Index", int, Array)


@record()
class Packing:
    """The layout of a matrix [taps, rows, columns], whose taps and rows a contraction sums over.

    It is stored as [panel, chunk, tap, tile, word, column, member]: a panel is `tiles` tiles of `columns` columns, a
    chunk is `depth` rows, a word is WORD bytes of consecutive rows of one column. Rows that pad the last chunk are 0;
    columns that pad the last panel are 0 or repeat a column of the matrix.

    With `overlap` the last chunk holds the last `depth` rows, so that its data can be read without padding; the rows
    that the chunk before holds too are 0. There are at least `depth` rows then, or one chunk.
    """

    element: str
    columns: int
    tiles: int
    depth: int
    overlap: bool = False
    beside: int = 0
    """Bytes behind each panel for other data."""

    @staticmethod
    def panels(lanes: int, vectors: int) -> Packing:
        """[panel, row, columns] in f32, for panels of some vectors."""
        return Packing(F32, vectors * lanes, 1, 1)

    @staticmethod
    def pairs(lanes: int, vectors: int) -> Packing:
        """[panel, pair of rows, columns, 2] in bf16, for panels of some vectors of words."""
        return Packing(BF16, vectors * lanes, 1, 2)

    @staticmethod
    def chunked(width: int, *, overlap: bool = False) -> Packing:
        """[panel, chunk, tap, tile, 16 pairs of rows, 16 columns, 2] in bf16, for panels of `width` tiles."""
        return Packing(BF16, tiles.ROWS, width, tiles.DEPTH, overlap)

    @property
    def word(self) -> int:
        """Consecutive rows in a word."""
        return WORD // SIZES[self.element]

    @property
    def width(self) -> int:
        """The columns of a panel."""
        return self.tiles * self.columns

    @property
    def row(self) -> int:
        """The bytes of a row of a panel, on average: rows of a chunk may be interleaved."""
        return self.width * SIZES[self.element]

    def vector(self, lanes: int) -> int:
        """The bytes between vectors of `lanes` neighbouring columns: parts of a row of words, or whole tiles."""
        if self.tiles > 1 and self.columns > lanes:
            raise ValueError(f"tiles of {self.columns} columns do not consist of vectors of {lanes}")
        return lanes * WORD * (self.depth // self.word if self.columns == lanes else 1)

    def shape(self, rows: int, columns: int, taps: int = 1) -> tuple[int, ...]:
        """The shape of a packed matrix."""
        panels, chunks = -(-columns // self.width), -(-rows // self.depth)
        return panels, chunks, taps, self.tiles, self.depth // self.word, self.columns, self.word

    def nbytes(self, rows: int, columns: int, taps: int = 1) -> int:
        """The bytes of a packed matrix."""
        shape = self.shape(rows, columns, taps)
        return prod(shape) * SIZES[self.element] + shape[0] * self.beside

    def position(self, shape: tuple[int, int], tap: Index, row: Index, column: Index) -> Index:
        """The byte offset of an element, or of each of arrays that broadcast. `shape`: the taps and rows."""
        taps, rows = shape
        chunks = -(-rows // self.depth)
        last = (chunks - 1) * self.depth
        inner = row % self.depth + (row >= last) * (chunks * self.depth - rows if self.overlap else 0)
        words, tile = self.depth // self.word, column % self.width // self.columns
        outer = (column // self.width * chunks + row // self.depth) * taps + tap
        word = (outer * self.tiles + tile) * words + inner // self.word
        return (word * self.columns + column % self.columns) * WORD + inner % self.word * SIZES[self.element]

    def empty(self, groups: int, rows: int, columns: int, taps: int = 1) -> Array:
        """Uninitialized memory for packed matrices, in words [group, …] but for their padding rows, which are 0."""
        shape = self.shape(rows, columns, taps)
        packed = weight_bytes(groups * self.nbytes(rows, columns, taps)).view(np.uint32).reshape(groups, *shape[:-1])
        if rows % self.depth:
            packed[:, :, -1] = 0
        return packed

    def packed(self, weights: Array, taps: int = 1) -> Array:
        """Pack weights [group, column, sum…] element by element: for few of them, and the definition for all."""
        groups, columns, *sums = weights.shape
        rows = prod(sums) // taps
        dtype = DTYPES[self.element]
        packed = self.empty(groups, rows, columns, taps)
        packed[:, -1] = 0
        tap, row = np.divmod(np.arange(taps * rows), rows)
        places = self.position((taps, rows), tap, row, np.arange(columns)[:, None])
        with np.errstate(invalid="ignore", over="ignore"):
            values = weights.reshape(groups, columns, taps * rows).astype(dtype)
        packed.view(dtype).reshape(groups, -1)[:, places // dtype.itemsize] = values
        return packed

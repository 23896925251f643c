"""The layouts of packed operands of contractions, as data: panels in the order in which kernels read them."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.dot import Dot
from irload.plan.backends.llvm.elements import BF16, DTYPES, F32, SIZES, WORD
from irload.plan.backends.llvm.weight_memory import weight_bytes
from irload.record import record


@record()
class Packing:
    """The packed layout of a matrix [taps, rows, columns]. The contraction sums over taps and rows.

    It is stored as [panel, chunk, tap, tile, word, column, member]: a panel is `tiles` tiles of `columns` columns, a
    chunk is `depth` rows, a word is WORD bytes of consecutive rows of one column. Rows that pad the last chunk are 0;
    columns that pad the last panel are 0 or repeat a column of the matrix.

    With `overlap` the last chunk holds the last `depth` rows, so that its data can be read without padding; the rows
    that the previous chunk also holds are 0. This requires at least `depth` rows, or one chunk.

    The method `arranged` orders the taps and rows of each column as they are stored; then they are packed like one tap.
    """

    element: str
    columns: int
    tiles: int
    depth: int
    overlap: bool = False
    beside: int = 0
    """Bytes after each panel for other data, such as scales."""

    @staticmethod
    def panels(lanes: int, vectors: int, element: str = F32) -> Packing:
        """[panel, word, column, member], for panels of `vectors` vectors of `lanes` words."""
        return Packing(element, vectors * lanes, 1, WORD // SIZES[element])

    @staticmethod
    def chunked(width: int, *, overlap: bool = False) -> Packing:
        """[panel, chunk, tap, tile, 16 pairs of rows, 16 columns, 2] in bf16, for panels of `width` tiles."""
        return Packing(BF16, tiles.ROWS, width, tiles.DEPTH, overlap)

    @staticmethod
    def read_by(dot: Dot, lanes: int, vectors: int) -> Packing:
        """The layout in which a dot reads panels of `vectors` vectors of `lanes` words."""
        return Packing.chunked(vectors) if dot.tiled else Packing.panels(lanes, vectors, dot.b)

    @property
    def word(self) -> int:
        """The number of consecutive rows in a word."""
        return WORD // SIZES[self.element]

    @property
    def width(self) -> int:
        """The columns of a panel."""
        return self.tiles * self.columns

    @property
    def row(self) -> int:
        """The bytes of a panel per row of the matrix. Rows of a chunk may be interleaved."""
        return self.width * SIZES[self.element]

    def vector(self, lanes: int) -> int:
        """The bytes between vectors of `lanes` neighbouring columns: vectors are parts of a row of words, or tiles."""
        if self.tiles > 1 and self.columns != lanes:
            raise ValueError(f"tiles of {self.columns} columns are not vectors of {lanes}")
        return lanes * WORD * (self.depth // self.word if self.tiles > 1 else 1)

    def shape(self, rows: int, columns: int) -> tuple[int, ...]:
        """The shape of a packed matrix with one tap, or of arranged rows."""
        panels, chunks = -(-columns // self.width), -(-rows // self.depth)
        return panels, chunks, self.tiles, self.depth // self.word, self.columns, self.word

    def nbytes(self, rows: int, columns: int) -> int:
        """The bytes of a packed matrix with one tap, or of arranged rows."""
        shape = self.shape(rows, columns)
        return prod(shape) * SIZES[self.element] + shape[0] * self.beside

    def empty(self, groups: int, rows: int, columns: int) -> Array:
        """Uninitialized memory for packed matrices, in words [group, …]."""
        shape = groups, *self.shape(rows, columns)[:-1]
        return weight_bytes(prod(shape) * WORD).view(np.uint32).reshape(shape)

    def arranged(self, weights: Array, taps: int = 1) -> Array:
        """Weights [group, column, sum…] as [group, column, row], a view if possible. The sum axes: taps, then rows."""
        groups, columns, *sums = weights.shape
        rows = prod(sums) // taps
        chunks = -(-rows // self.depth)
        if taps == 1 and (chunks * self.depth == rows or not self.overlap):
            return weights.reshape(groups, columns, rows)
        result = np.zeros((groups, columns, chunks, taps, self.depth), weights.dtype)
        by_tap, split = weights.reshape(groups, columns, taps, rows), (chunks - 1) * self.depth
        previous = by_tap[..., :split].reshape(groups, columns, taps, chunks - 1, self.depth)
        result[:, :, :-1] = previous.swapaxes(2, 3)
        last = slice(chunks * self.depth - rows, None) if self.overlap else slice(rows - split)
        result[:, :, -1, :, last] = by_tap[..., split:]
        return result.reshape(groups, columns, -1)

    def packed(self, weights: Array, taps: int = 1) -> Array:
        """Pack weights [group, column, sum…] by NumPy: used for small weights, and as the reference of the kernel."""
        arranged = self.arranged(weights, taps)
        groups, columns, rows = arranged.shape
        panels, chunks, *_ = self.shape(rows, columns)
        wide = np.zeros((groups, panels * self.width, chunks * self.depth), DTYPES[self.element])
        with np.errstate(invalid="ignore", over="ignore"):
            wide[:, :columns, :rows] = arranged
        packed = self.empty(groups, rows, columns)
        split = wide.reshape(groups, panels, self.tiles, self.columns, chunks, self.depth // self.word, self.word)
        packed.view(wide.dtype).reshape(*packed.shape, self.word)[...] = split.transpose(0, 1, 4, 2, 5, 3, 6)
        return packed

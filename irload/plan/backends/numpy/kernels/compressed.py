"""Products and gathers with compressed weights, which are widened block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core.element import ElementType
from irload.core.packing import unpack
from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.epilogue import Epilogue
from irload.plan.backends.numpy.kernels.tiles import cut
from irload.plan.backends.numpy.kernels.views import shaped
from irload.plan.backends.numpy.measured import PRODUCTS
from irload.plan.ir.compressed import Compressed
from irload.plan.ir.constant import Constant
from irload.plan.threads import ThreadCalls
from irload.record import record

BLOCK = 1 << 18
"""Elements that are widened at once: 1 MB."""


@record(eq=False)
class CompressedMatrix:
    """A compressed matrix as stored in the file, whose rows start at byte boundaries. Products sum along `axis`.

    `scale` and `zero`: [rows, groups, 1] for sums along rows, otherwise [groups, 1, columns].
    """

    codes: Array
    element: ElementType
    shape: tuple[int, int]
    axis: int
    scale: Array | None
    zero: Array | None

    @staticmethod
    def of(weights: Compressed, axis: int) -> CompressedMatrix | None:
        """Return the matrix.

        None unless it has 2 axes, 4, 8 or 16 bits per element, whole bytes per row, and groups of equal length.
        """
        if len(weights.shape) != 2 or weights.element.bits not in (4, 8, 16):
            return None
        rows, columns = weights.shape
        if not rows * columns or columns * weights.element.bits % 8 or weights.groups(axis) is None:
            return None

        def per_group(factor: Constant | None) -> Array | None:
            if factor is None:
                return None
            array = weights.per_group(factor, axis)
            return array[..., None] if axis == 1 else array.T[:, None]

        codes = shaped(weights.stored.codes, rows, weights.stored.codes.size // rows)
        scale, zero = per_group(weights.scale), per_group(weights.zero_point)
        return CompressedMatrix(codes, weights.element, (rows, columns), axis, scale, zero)

    @property
    def columns_per_block(self) -> int:
        """The columns of the result for which at most BLOCK elements are widened: an even number."""
        return max(BLOCK // self.shape[self.axis] // 2 * 2, 2)

    @property
    def arrays(self) -> list[Array]:
        """All arrays."""
        return [a for a in (self.codes, self.scale, self.zero) if a is not None]

    def block(self, start: int, stop: int) -> Array:
        """Return the second operand in f32 for these columns of the result; `start` must be at a byte boundary."""
        if self.axis == 1:
            return self.rows(slice(start, stop)).T
        bits = self.element.bits
        codes = self.codes[:, start * bits // 8 : -(-stop * bits // 8)]
        return self._widened(codes, stop - start, (..., slice(start, stop)))

    def rows(self, chosen: slice | Array) -> Array:
        """Return rows of a matrix that is summed along its rows, in f32."""
        return self._widened(self.codes[chosen], self.shape[1], (chosen,))

    def _widened(self, codes: Array, columns: int, index: tuple[Any, ...]) -> Array:
        rows = len(codes)
        wide = unpack(shaped(np.ascontiguousarray(codes), codes.size), self.element, (rows, columns)).astype(np.float32)
        for factor, apply in ((self.zero, np.subtract), (self.scale, np.multiply)):
            if factor is not None:
                shape = (rows, factor.shape[1], -1) if self.axis == 1 else (factor.shape[0], -1, columns)
                grouped = shaped(wide, *shape)
                apply(grouped, factor[index], out=grouped)
        return wide


def compressed_by_columns(a: Array, b: CompressedMatrix, out: Array, epilogue: Epilogue, scratch: Scratch) -> Phases:
    """out[M,N] = epilogue(a[M,K] @ b). Threads share the columns."""
    length, columns = b.shape[b.axis], out.shape[1]
    wide, step = epilogue.broadcast(out.shape), b.columns_per_block
    parts: list[ThreadCalls] = []
    for first, last in cut(-(-columns // 2), scratch.share(out.size * length, PRODUCTS)):
        part: ThreadCalls = []
        for start in range(2 * first, min(2 * last, columns), step):
            stop = min(start + step, 2 * last, columns)
            part.append((_multiply, (a, b, start, stop, out[:, start:stop])))
            part += wide[:, start:stop].calls(out[:, start:stop], scratch)
        parts.append(part)
    return [parts]


def multiply_compressed(a: Array, b: CompressedMatrix, out: Array) -> None:
    """out[M,N] = a[M,K] @ b."""
    for start in range(0, out.shape[1], b.columns_per_block):
        stop = min(start + b.columns_per_block, out.shape[1])
        _multiply(a, b, start, stop, out[:, start:stop])


def _multiply(a: Array, b: CompressedMatrix, start: int, stop: int, out: Array) -> None:
    np.matmul(a, b.block(start, stop), out)


def take_widened(out: Array, table: CompressedMatrix, indices: Array) -> None:
    """Write the selected rows. Negative indices count from the end, indices out of range give zeros."""
    size = table.shape[0]
    at = np.where(indices < 0, indices + size, indices)
    outside = (at < 0) | (at >= size)
    rows = table.rows(shaped(np.clip(at, 0, size - 1), at.size))
    rows[shaped(outside, at.size)] = 0
    np.copyto(out, shaped(rows, *out.shape))

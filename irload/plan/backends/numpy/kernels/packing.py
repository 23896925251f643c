"""Packs weights for kernels, once, block by block so that the blocks stay in the cache."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from weakref import WeakValueDictionary

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.small_gemm import panel_width
from irload.plan.backends.numpy.kernels.views import shaped
from irload.plan.backends.numpy.measured import PACK_COLUMNS, PACK_ROWS
from irload.plan.ir.constant import Constant
from irload.plan.memory.arena import aligned_bytes
from irload.record import record
from irload.system.blas import small_kernels

PackedWeights = WeakValueDictionary[tuple[str, Constant], Array]
"""Packed weights by kind of packing and constant. They are released with the last plan that uses them."""


@record()
class WeightOperand:
    """Constant weights and their packed forms.

    `direct`, `held`: lists of the arrays that the kernels of a plan read, unpacked and packed.
    """

    source: Constant
    packs: PackedWeights
    direct: list[Array]
    held: list[Array]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights; does not read them."""
        return self.source.shape

    @property
    def array(self) -> Array:
        """Return the stored weights."""
        self.direct.append(self.source.array)
        return self.direct[-1]

    def packed(self, kind: str, how: Callable[[Array], Array]) -> Array:
        """Return the weights packed for a kernel, once for all plans of a model; the original is released."""
        packed = self.packs.get((kind, self.source))
        if packed is None:
            packed = self.packs[kind, self.source] = how(self.source.array)
            self.source.release()
        self.held.append(packed)
        return packed


def contiguous(view: Array) -> Array:
    """Return a contiguous copy of a transposed view, copied block by block."""
    out = aligned(view.shape)
    rows, columns = view.shape[-2:]
    for i in range(0, rows, PACK_ROWS):
        for j in range(0, columns, PACK_COLUMNS):
            block = (..., slice(i, i + PACK_ROWS), slice(j, j + PACK_COLUMNS))
            np.copyto(out[block], view[block])
    return out


def pack_matrix(view: Array) -> Array:
    """Pack matrices [K,N] as second operands: panels [N/width, K, width] if BLAS reads them in place.

    Leading axes are kept.
    """
    *lead, k, n = view.shape
    width = panel_width(k, n) if small_kernels() else None
    if width is None:
        return contiguous(view)
    out = aligned((*lead, n // width, k, width))
    for j in range(n // width):
        panel = view[..., j * width : (j + 1) * width]
        for i in range(0, k, PACK_ROWS):
            np.copyto(out[..., j, i : i + PACK_ROWS, :], panel[..., i : i + PACK_ROWS, :])
    return out


def aligned(shape: tuple[int, ...]) -> Array:
    """Return an uninitialised f32 array aligned to a cache line."""
    return shaped(aligned_bytes(4 * prod(shape)).view(np.float32), *shape)

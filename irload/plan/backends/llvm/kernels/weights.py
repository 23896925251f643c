"""Packs constant weights when they are loaded: f16, f32 or i8, or compressed weights without widening them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from irload.core import element as et
from irload.core.packing import unpack
from irload.core.tensor import Array
from irload.plan.backends.llvm.elements import BF16, DTYPES, F16, F32, U8, WORD
from irload.plan.backends.llvm.kernel import Kernel, address
from irload.plan.backends.llvm.kernels.packing import Pack
from irload.plan.backends.llvm.library import function
from irload.plan.backends.llvm.packing import Packing
from irload.plan.backends.llvm.target import Target, runnable
from irload.plan.backends.llvm.tuning import NUMPY_PACKED
from irload.plan.backends.llvm.weight_memory import weight_bytes
from irload.plan.backends.llvm.widening import WIDENINGS, CompressedPanel, Compression
from irload.plan.ir.compressed import Compressed, compressed
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Value
from irload.plan.memory.arena import aligned_bytes
from irload.plan.threads import pool


def pack_weights(weights: Array, packing: Packing, target: Target, threads: int, taps: int = 1) -> Array:
    """Pack weights [group, column, sum…] of f16, f32, or i8 with one tap: words [group, …] as `packing` specifies.

    The sum is over all axes but the first two, in their order: `taps`, then the rows of the packing.
    """
    if weights.dtype == np.int8:
        words = _words(weights.reshape(*weights.shape[:2], -1), packing)
        return pack_weights(words, replace(packing, element=F32, depth=packing.depth // packing.word), target, threads)
    if weights.size <= NUMPY_PACKED:
        return packing.packed(weights, taps)
    arranged = packing.arranged(weights, taps)
    groups, columns, rows = arranged.shape
    packed, source = packing.empty(groups, rows, columns), F16 if arranged.dtype == np.float16 else F32
    prepare(Pack.of(packing, arranged.swapaxes(1, 2), source), [arranged, packed], target, threads)
    return packed


def _words(weights: Array, packing: Packing) -> Array:
    """Weights [group, column, row] of i8 as words of consecutive rows in the packed type, viewed as f32."""
    *outer, rows = weights.shape
    padded = np.zeros((*outer, -(-rows // packing.word) * packing.word), DTYPES[packing.element])
    padded[..., :rows] = weights
    return padded.view(np.float32)


def prepare(
    kernel: Kernel, arguments: Sequence[Array | int], target: Target, threads: int, count: int | None = None
) -> None:
    """Run a kernel now, over all units or over `count` units.

    `arguments`: the pointers, then numbers that precede `kernel.numbers`. If this processor lacks the target's
    instructions, the kernel is compiled for this processor instead.
    """
    call, _code = function(kernel.code, runnable(target))
    pointers = [a if isinstance(a, int) else address(a) for a in arguments]
    table = np.array([*pointers, *kernel.numbers], np.int64)
    scratch, units = aligned_bytes(kernel.scratch * threads), kernel.count if count is None else count
    parts = pairwise(units * k // threads for k in range(threads + 1))
    pool.run(
        [[(call, (address(table), *part, address(scratch) + k * kernel.scratch, None))] for k, part in enumerate(parts)]
    )


_SCALES: dict[np.dtype[Any], str] = {np.dtype(np.float16): F16, np.dtype(bfloat16): BF16, et.f8e8m0.dtype: BF16}
"""The types in which scales are packed, by the stored type; f32 by default. Each represents all stored values."""


def compression_of(weights: Compressed, axis: int) -> Compression | None:
    """Return the form for sums along an axis of the weights, None if kernels do not support it."""
    widening, groups, length = WIDENINGS.get(weights.element.name), weights.groups(axis), weights.shape[axis]
    if widening is None or groups is None or not length:
        return None
    group = length // groups if groups > 1 else 0
    if group % widening.members:
        return None
    scale = None if weights.scale is None else _SCALES.get(weights.scale.dtype, F32)
    zero = None
    if weights.zero_point is not None:
        zero = U8 if weights.zero_point.element is weights.element and weights.element.kind != "float" else F32
    return Compression(weights.element.name, group, scale, zero)


def narrow_form(weights: Value, axis: int) -> Compression | None:
    """Return the form of compressed weights of less than 16 bits for sums along an axis, None for other weights."""
    stored = compressed(weights.source)
    return None if stored is None or stored.is_short else compression_of(stored, axis)


def pack_panels(panel: CompressedPanel, axis: int, target: Target, threads: int, constant: Constant) -> Array:
    """Pack compressed weights that are summed along `axis`: each panel has words of codes, then scales and zero points.

    A panel has one column, or whole vectors of columns.
    """
    form, columns, weights = panel.compression, panel.columns, compressed(constant)
    assert weights is not None
    words, at = _words_of(weights, axis), panel.scales
    matrices = words.reshape(-1, *words.shape[-2:]).view(np.float32).swapaxes(1, 2)
    kernel = Pack.of(Packing(F32, columns, 1, 1, beside=form.beside(panel.length, columns)), matrices)
    packed = weight_bytes(kernel.nbytes)
    if columns == 1:
        packed.reshape(-1, form.nbytes(panel.length, 1))[:, :at] = words.view(np.uint8).reshape(-1, at)
    else:
        prepare(kernel, [matrices, packed], target, threads)
    bias = form.widening.bias  # zero points are stored for unsigned codes
    for factor, kind, added in ((weights.scale, form.scale, 0), (weights.zero_point, form.zero, bias)):
        if factor is not None and kind is not None:
            factors = weights.per_group(factor, axis) + np.float32(added)
            at += _pack_factors(packed, at, factors, columns, DTYPES[kind])
    return packed


def _pack_factors(packed: Array, start: int, factors: Array, width: int, dtype: np.dtype[Any]) -> int:
    """Pack one factor per column and group at byte `start` of each panel. Returns their bytes per panel."""
    *outer, columns, groups = factors.shape
    panels = -(-columns // width)
    stride = packed.size // (prod(outer) * panels)
    wide = np.zeros((prod(outer), panels * width, groups), dtype)
    wide[:, :columns] = factors.reshape(-1, columns, groups)
    shape = (prod(outer) * panels, groups, width)
    target = packed.reshape(-1, stride)[:, start : start + prod(shape[1:]) * dtype.itemsize]
    target[...] = wide.reshape(shape[0], width, groups).swapaxes(1, 2).reshape(shape[0], -1).view(np.uint8)
    return prod(shape[1:]) * dtype.itemsize


def _words_of(weights: Compressed, axis: int) -> Array:
    """The codes in 32-bit words of consecutive elements along `axis`, which becomes the last axis."""
    widening, rank = WIDENINGS[weights.element.name], len(weights.shape)
    codes, length = weights.stored.codes, weights.shape[axis]
    if address(codes) % WORD or not codes.flags.c_contiguous:
        codes = codes.copy()
    if axis % rank == rank - 1 and length % widening.members == 0:
        words = codes.view(np.uint32).reshape(*weights.shape[:-1], length // widening.members)
    else:
        elements = codes if widening.bits >= 8 else unpack(codes, et.u4, (2 * codes.size,))[: prod(weights.shape)]
        elements = elements.view(np.uint16) if widening.bits == 16 else elements
        moved = np.moveaxis(elements.reshape(weights.shape), axis, -1)
        wide = np.zeros((*moved.shape[:-1], -(-length // widening.members), widening.members), moved.dtype)
        wide.reshape(*moved.shape[:-1], -1)[..., :length] = moved
        words = np.zeros(wide.shape[:-1], np.uint32)
        for member in range(widening.members):
            words |= wide[..., member].astype(np.uint32) << np.uint32(widening.bits * member)
    if widening.bias:
        words = words ^ np.uint32(sum(widening.bias << at for at in range(0, 8 * WORD, widening.bits)))
    return words

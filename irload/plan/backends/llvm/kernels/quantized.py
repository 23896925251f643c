"""Convolutions and matmuls of u8 data and i8 weights, with exact sums in i32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.dot import Dot, byte_dot
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.kernels.contraction.chunks import Chunks
from irload.plan.backends.llvm.kernels.copying import CopyOperand, copy
from irload.plan.backends.llvm.kernels.depthwise import fits_depthwise, select_depthwise
from irload.plan.backends.llvm.kernels.maps import Maps, maps_in_place
from irload.plan.backends.llvm.kernels.windowed import WindowedKernel
from irload.plan.backends.llvm.kernels.windowed_contraction import contraction_of, launched
from irload.plan.backends.llvm.kernels.winograd_selection import fits_winograd, select_winograd
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.weight_memory import weight_bytes
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Value
from irload.plan.ir.steps import Integers
from irload.plan.ir.strides import Strided

ADD = Expression(2, (Instruction("add", (0, 1)),))
FILLED = 4096
"""Bytes that a run of a fill copies."""


def integer_convolution(conv: WindowedKernel, integers: Integers, selector: Selector) -> list[Launch]:
    """A convolution of bytes: depthwise in f32, which is exact, otherwise a contraction.

    Winograd's algorithm in f32 is faster than instructions that take two to add four products: 64 channels of 56 × 56
    take 0.75 ms, 1.24 by vpmaddubsw (Zen 3). Its error is far below a quantum of the result.
    """
    if fits_depthwise(conv):
        return [select_depthwise(conv, selector, integers.zero_point)]
    if not selector.target.vnni and fits_winograd(conv, selector):
        return [select_winograd(conv, selector, integers.zero_point)]
    dot, padding = byte_dot(selector.target, saturates=not integers.pairs_fit), integers.zero_point
    is_padded = padding != 0 and any(window.is_padded for window in conv.windows)
    maps = None if is_padded else maps_in_place(conv, dot, conv.shape[2])
    copies: list[Launch] = []
    if maps is None:
        maps, copies = _copied(conv, dot, padding if is_padded else None, selector)
    if padding:
        sums = compensation(conv.weights, padding, tuple(range(2, len(conv.shape))), selector).reshape(
            -1, *(1,) * len(conv.windows)
        )
        conv = replace(conv, operands=[sums, *conv.operands], epilogue=ADD.then(conv.epilogue, 0))
    return [*copies, *launched(conv, maps, contraction_of(conv, maps, dot, selector.target), selector)]


def compensation(weights: Value, zero_point: int, axes: tuple[int, ...], selector: Selector) -> Array:
    """The zero point times the sum of the weights over `axes`, negative, one number per channel."""

    def summed(array: Array) -> Array:
        sums = array.sum(axes, np.int64).reshape(-1)
        found = weight_bytes(4 * sums.size).view(np.float32)
        found[...] = -zero_point * sums
        return found

    return selector.packed(weights, ("compensation", zero_point, axes), summed)


def contiguous_rows(data: Array, selector: Selector) -> tuple[Temporary, tuple[int, ...], Launch]:
    """A copy of data whose last axis is not contiguous bytes: the memory, its strides and the launch."""
    strided = Strided.dense(data.shape)
    place = selector.temporary(data.size)
    return place, strided.strides, copy(CopyOperand(place, strided), CopyOperand.of(data), 1, selector)


def _copied(conv: WindowedKernel, dot: Dot, fill: int | None, selector: Selector) -> tuple[Maps, list[Launch]]:
    """A copy with whole words of channels, and with padding of `fill`; and its launches.

    Bytes after the channels of a group are not written: their weights are 0.
    """
    data, (groups, _, depth), rank = conv.data, conv.shape[:3], len(conv.windows)
    whole = dot.words(depth) * dot.k
    windows = conv.windows
    sizes, begins = data.shape[2:], (0,) * rank
    if fill is not None:
        begins = tuple(max(w.begin, 0) for w in windows)
        sizes = tuple(max(b + w.size, w.reach - w.begin + b) for b, w in zip(begins, windows, strict=True))
        windows = tuple(
            replace(w, size=size, begin=w.begin - b) for w, size, b in zip(windows, sizes, begins, strict=True)
        )
    strides = Strided.dense((data.shape[0], groups, whole, *sizes), (0, *range(3, 3 + rank), 1, 2)).strides
    nbytes = -(-data.shape[0] * strides[0] // FILLED) * FILLED
    place = selector.temporary(nbytes)
    launches: list[Launch] = []
    if fill is not None:
        launches.append(_filled(place, nbytes, fill, selector))
    start = sum(b * stride for b, stride in zip(begins, strides[3:], strict=True))
    shape = (data.shape[0], groups, depth, *data.shape[2:])
    split = np.lib.stride_tricks.as_strided(
        data, shape, (data.strides[0], depth * data.strides[1], *data.strides[1:]), writeable=False
    )
    target = CopyOperand(place, Strided(shape, strides, start))
    launches.append(copy(target, replace(CopyOperand.of(split), keep=[data]), 1, selector))

    def arrange(weights: Array) -> Array:
        pads = [(0, 0)] * weights.ndim
        pads[2] = (0, whole - depth)
        return np.moveaxis(np.pad(weights, pads), 2, -1)

    chunks = Chunks.in_place(whole, 1, dot)
    maps = Maps(
        place, strides[0], whole, strides[3:], windows, chunks, nbytes, arrange=arrange, key=("bytes", whole)
    )  # fmt: skip
    return maps, launches


def _filled(place: Temporary, nbytes: int, fill: int, selector: Selector) -> Launch:
    """Fill memory with one byte."""
    run = weight_bytes(FILLED)
    run[...] = fill
    shape = (nbytes // FILLED, FILLED)
    source = CopyOperand.of(np.broadcast_to(run, shape))
    return copy(CopyOperand(place, Strided.dense(shape)), replace(source, keep=[run]), 1, selector)

"""Convolutions on channels-last data. Each thread computes a range of output rows; padding is added in a copy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.copying import dense
from irload.plan.backends.numpy.kernels.epilogue import Epilogue
from irload.plan.backends.numpy.kernels.matmul import columns_by_matrix, rows_by_matrix
from irload.plan.backends.numpy.kernels.packing import WeightOperand, contiguous, pack_matrix
from irload.plan.backends.numpy.kernels.small_gemm import panel_width, products
from irload.plan.backends.numpy.kernels.tiles import cut, cut_range
from irload.plan.backends.numpy.kernels.views import merged, shaped, shaped_constant
from irload.plan.backends.numpy.kernels.windows import fill_band
from irload.plan.backends.numpy.measured import CONV_TILE, FEW_CHANNELS, LARGEST_TILE, POSITIONS, PRODUCTS, TAPS
from irload.plan.threads import ThreadCalls
from irload.record import record


@record()
class Conv:
    """One convolution: x [N,X…,C], w [G,O/G,C/G,K…], out [N,Y…,O]."""

    x: Array
    w: WeightOperand
    out: Array
    epilogue: Epilogue
    strides: Sequence[int]
    dilations: Sequence[int]
    pads: Sequence[tuple[int, int]]
    """Padding before and after the data, per axis."""

    @property
    def kernel(self) -> tuple[int, ...]:
        """The lengths of the kernel."""
        return self.w.shape[3:]


def pointwise(conv: Conv, scratch: Scratch) -> Phases:
    """Convolution with a 1×1 kernel: one matmul over all positions."""
    rows, out, epilogue, phases = positions(conv, scratch)
    w = _pointwise_weights(conv)
    make = columns_by_matrix if is_small_map(len(rows), scratch.threads) else rows_by_matrix
    return phases + make(rows, w, out, epilogue, scratch)


def positions(conv: Conv, scratch: Scratch) -> tuple[Array, Array, Epilogue, Phases]:
    """Return data, result and epilogue of a 1×1 kernel with one row per position, and the required copies."""
    n, oh, ow, o = conv.out.shape
    phases: Phases = []
    x = dense(_pointwise_data(conv), scratch, phases)
    out = shaped(conv.out, n * oh * ow, o)
    epilogue = conv.epilogue.flattened(conv.out.shape, out.shape, scratch, phases)
    return shaped(x, len(out), -1), out, epilogue, phases


def _pointwise_data(conv: Conv) -> Array:
    """Return the input positions [N,OH,OW,C] of a 1×1 kernel."""
    _, oh, ow, _ = conv.out.shape
    return conv.x[:, :: conv.strides[0], :: conv.strides[1]][:, :oh, :ow]


def _pointwise_weights(conv: Conv) -> Array:
    """Return [C, O], or panels."""
    return conv.w.packed("1x1", lambda w: pack_matrix(shaped_constant(w, *w.shape[1:3]).T))


def is_small_map(rows: int, threads: int) -> bool:
    """True if threads should share channels instead of positions, for which each thread would pack all weights."""
    return rows < (32 if threads == 1 else 128 * threads)


def im2col(conv: Conv, scratch: Scratch) -> Phases:
    """Convolution with any kernel: windows are copied row by row into a tile, followed by one matmul per group."""
    n, oh, ow, o = conv.out.shape
    groups, per_group, depth = conv.w.shape[:3]
    kh, kw = conv.kernel
    k = kh * kw * depth
    threads = scratch.share(conv.out.size * k, PRODUCTS)
    w = im2col_weights(conv)
    epilogue = conv.epilogue.broadcast(conv.out.shape)
    rows_at_once = max(1, min(oh, max(CONV_TILE // (ow * k), POSITIONS // ow)))
    columns_at_once = ow
    if ow * k > LARGEST_TILE:  # the windows of a single row of the result
        rows_at_once, columns_at_once = 1, max(1, LARGEST_TILE // k)
    parts: list[ThreadCalls] = []
    for start, stop in cut(oh, threads):
        part: ThreadCalls = []
        tile = scratch.take((rows_at_once, columns_at_once, kh, kw, depth))
        block = groups == 1 and merged(conv.out[0, :rows_at_once], -1, o) is not None
        narrow = None if block else scratch.take((rows_at_once * columns_at_once, per_group))
        for sample in range(n):
            band = padded_band(conv, sample, start, stop, scratch, part)
            windows = window_view(conv, band, stop - start)
            bands = cut_range(0, stop - start, rows_at_once)
            for (a, b), (c, d) in product(bands, cut_range(0, ow, columns_at_once)):
                out = conv.out[sample, start + a : start + b, c:d]
                for g in range(groups):
                    columns = tile[: b - a, : d - c]
                    part.append((np.copyto, (columns, windows[a:b, c:d, ..., g * depth : (g + 1) * depth])))
                    matrix = shaped(columns, (b - a) * (d - c), k)
                    if narrow is None:
                        part += products(matrix, w[0], shaped(out, -1, o))
                    else:
                        result = narrow[: (b - a) * (d - c)]
                        target = out[..., g * per_group : (g + 1) * per_group]
                        part += products(matrix, w[g], result)
                        part.append((np.copyto, (target, shaped(result, *target.shape))))
                part += epilogue[sample, start + a : start + b, c:d].calls(out, scratch)
        parts.append(part)
    return [parts]


def im2col_weights(conv: Conv) -> Array:
    """Return [G, kh·kw·C/G, O/G], or panels of each group."""
    groups, per_group, depth, kh, kw = conv.w.shape

    def how(w: Array) -> Array:
        rows = shaped(contiguous(w.transpose(0, 3, 4, 2, 1)), groups, kh * kw * depth, per_group)
        return pack_matrix(rows) if panel_width(*rows.shape[1:]) else rows

    return conv.w.packed("im2col", how)


def depthwise(conv: Conv, scratch: Scratch) -> Phases:
    """Depthwise convolution: sums of products over windows, in blocks of rows that stay in cache.

    Without stride and dilation along columns, a row of windows is contiguous. The weights are then repeated along the
    row, so that NumPy's inner loop covers all of it.
    """
    n, oh, ow, channels = conv.out.shape
    kh, kw = conv.kernel
    w = conv.w.packed(
        "depthwise", lambda w: np.ascontiguousarray(shaped_constant(w, channels, kh, kw).transpose(1, 2, 0))
    )
    epilogue = conv.epilogue.broadcast(conv.out.shape)
    threads = scratch.share(conv.out.size * kh * kw, TAPS)
    rows_at_once = max(1, min(oh, 2 * scratch.tile // (ow * channels)))
    runs = conv.strides[1] == conv.dilations[1] == 1 and channels <= FEW_CHANNELS
    runs = runs and _lines(conv.x) and _lines(conv.out)
    long = (kh, kw, ow * channels)
    if runs:
        w = shaped_constant(np.broadcast_to(w[:, :, None], (kh, kw, ow, channels)), *long)
    sum_of = "hijn,ijn->hn" if runs else "hijwc,ijc->hwc"
    parts: list[ThreadCalls] = []
    for start, stop in cut(oh, threads):
        part: ThreadCalls = []
        for sample in range(n):
            band = padded_band(conv, sample, start, stop, scratch, part)
            windows = window_view(conv, band, stop - start).transpose(0, 2, 3, 1, 4)
            if runs:
                windows = as_strided(windows, (stop - start, *long), (*windows.strides[:3], windows.itemsize))
            for a, b in cut_range(0, stop - start, rows_at_once):
                out = conv.out[sample, start + a : start + b]
                target = shaped(out, b - a, -1) if runs else out
                part.append((_sum_of_products, (sum_of, windows[a:b], w, target)))
                part += epilogue[sample, start + a : start + b].calls(out, scratch)
        parts.append(part)
    return [parts]


def _lines(a: Array) -> bool:
    """True if the elements of a row are contiguous with channels innermost."""
    return a.strides[3] == a.itemsize and a.strides[2] == a.shape[3] * a.itemsize


def _sum_of_products(subscripts: str, windows: Array, weights: Array, out: Array) -> None:
    np.einsum(subscripts, windows, weights, out=out)


def padded_band(conv: Conv, sample: int, start: int, stop: int, scratch: Scratch, part: ThreadCalls) -> Array:
    """Return the input rows for output rows start..stop, zero padded. Appends the copies to `part`."""
    _, height, width, channels = conv.x.shape
    (top, _), (left, right) = conv.pads
    first = start * conv.strides[0] - top
    last = (stop - 1) * conv.strides[0] - top + (conv.kernel[0] - 1) * conv.dilations[0] + 1
    if first >= 0 and last <= height and left == right == 0:
        return conv.x[sample, first:last]
    band = scratch.take((last - first, width + left + right, channels))
    fill_band(band, conv.x[sample], first, left, part)
    return band


def window_view(conv: Conv, band: Array, rows: int) -> Array:
    """Return the windows of a band as a view [rows, OW, kh, kw, C]."""
    (sh, sw), (dh, dw), (kh, kw) = conv.strides, conv.dilations, conv.kernel
    r, c, e = band.strides
    shape = (rows, conv.out.shape[2], kh, kw, band.shape[2])
    return as_strided(band, shape, (sh * r, sw * c, dh * r, dw * c, e), writeable=False)

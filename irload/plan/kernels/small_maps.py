"""Convolutions of one sample whose maps are small and whose weights are large: threads share the weights."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.kernels.calls import Part, Scratch
from irload.plan.kernels.operands import flattened
from irload.plan.kernels.packing import contiguous
from irload.plan.kernels.product import columns_by_matrix
from irload.plan.kernels.streamed import weights_first
from irload.plan.kernels.views import shaped
from irload.plan.kernels.window import Conv, im2col_weights, padded_band, positions, window_view


def pointwise(conv: Conv, scratch: Scratch, threads: int) -> list[list[Part]]:
    """1×1 kernels of many channels: the weights pass through once, as they are stored."""
    rows, out, extra, phases = positions(conv, scratch, threads)
    w = shaped(conv.w.array, *conv.w.shape[1:3])
    return [*phases, *weights_first(rows, w, out, extra, conv.epilogue, scratch, threads)]


def im2col(conv: Conv, scratch: Scratch, threads: int) -> list[list[Part]]:
    """All windows first, then a matmul of which each thread makes a range of channels."""
    matrix, out, extra, phases = _all_windows(conv, scratch)
    w = im2col_weights(conv)[0]
    return phases + columns_by_matrix(matrix, w, out, extra, conv.epilogue, scratch, threads)


def streamed_im2col(conv: Conv, scratch: Scratch, threads: int) -> list[list[Part]]:
    """The same for large weights: all windows first, then the weights pass through once."""
    matrix, out, extra, phases = _all_windows(conv, scratch)
    w = conv.w.laid("im2col, streamed", lambda w: shaped(contiguous(np.moveaxis(w[0], 1, -1)), len(w[0]), -1))
    return [*phases, *weights_first(matrix, w, out, extra, conv.epilogue, scratch, threads)]


def _all_windows(conv: Conv, scratch: Scratch) -> tuple[Array, Array, list[Array], list[list[Part]]]:
    """The windows of one sample as rows, the result and the operands likewise, and the calls that gather them."""
    _, oh, ow, o = conv.out.shape
    gather: Part = []
    band = padded_band(conv, 0, 0, oh, scratch, gather)
    windows = window_view(conv, band, oh)
    columns = scratch.take(windows.shape)
    gather.append((np.copyto, (columns, windows)))
    phases: list[list[Part]] = [[gather]]
    out = shaped(conv.out, oh * ow, o)
    extra = [flattened(e, conv.out.shape, out.shape, scratch, phases) for e in conv.extra]
    return shaped(columns, oh * ow, -1), out, extra, phases

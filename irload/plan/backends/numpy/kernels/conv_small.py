"""Convolutions of one sample with small maps and large weights, in which each thread reads a part of the weights."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.conv2d import Conv, im2col_weights, padded_band, positions, window_view
from irload.plan.backends.numpy.kernels.epilogue import Epilogue
from irload.plan.backends.numpy.kernels.matmul import columns_by_matrix
from irload.plan.backends.numpy.kernels.packing import contiguous
from irload.plan.backends.numpy.kernels.views import shaped
from irload.plan.backends.numpy.kernels.weight_streaming import stream_weights
from irload.plan.threads import ThreadCalls


def pointwise(conv: Conv, scratch: Scratch) -> Phases:
    """Convolution with a 1×1 kernel and many channels: the weights are read once, in stored order."""
    rows, out, epilogue, phases = positions(conv, scratch)
    w = shaped(conv.w.array, *conv.w.shape[1:3])
    return [*phases, *stream_weights(rows, w, out, epilogue, scratch)]


def im2col(conv: Conv, scratch: Scratch) -> Phases:
    """Copy all windows, then multiply; each thread computes a range of output channels."""
    matrix, out, epilogue, phases = _all_windows(conv, scratch)
    w = im2col_weights(conv)[0]
    return phases + columns_by_matrix(matrix, w, out, epilogue, scratch)


def streamed_im2col(conv: Conv, scratch: Scratch) -> Phases:
    """Copy all windows, then multiply; the weights are read once, in stored order."""
    matrix, out, epilogue, phases = _all_windows(conv, scratch)
    w = conv.w.packed("im2col, streamed", lambda w: shaped(contiguous(np.moveaxis(w[0], 1, -1)), len(w[0]), -1))
    return [*phases, *stream_weights(matrix, w, out, epilogue, scratch)]


def _all_windows(conv: Conv, scratch: Scratch) -> tuple[Array, Array, Epilogue, Phases]:
    """Return the windows, result and epilogue of one sample as rows, and the calls that copy the windows."""
    _, oh, ow, o = conv.out.shape
    gather: ThreadCalls = []
    band = padded_band(conv, 0, 0, oh, scratch, gather)
    windows = window_view(conv, band, oh)
    columns = scratch.take(windows.shape)
    gather.append((np.copyto, (columns, windows)))
    phases: Phases = [[gather]]
    out = shaped(conv.out, oh * ow, o)
    epilogue = conv.epilogue.flattened(conv.out.shape, out.shape, scratch, phases)
    return shaped(columns, oh * ow, -1), out, epilogue, phases

"""Convolutions of one sample with small maps, in which each thread reads a part of the weights."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.conv2d import Conv, im2col_weights, padded_band, window_view
from irload.plan.backends.numpy.kernels.matmul import columns_by_matrix
from irload.plan.backends.numpy.kernels.views import shaped
from irload.plan.threads import ThreadCalls


def im2col(conv: Conv, scratch: Scratch) -> Phases:
    """Copy all windows, then multiply; each thread computes a range of output channels."""
    _, oh, ow, o = conv.out.shape
    gather: ThreadCalls = []
    band = padded_band(conv, 0, 0, oh, scratch, gather)
    windows = window_view(conv, band, oh)
    columns = scratch.take(windows.shape)
    gather.append((np.copyto, (columns, windows)))
    phases: Phases = [[gather]]
    out = shaped(conv.out, oh * ow, o)
    epilogue = conv.epilogue.flattened(conv.out.shape, out.shape, scratch, phases)
    w = im2col_weights(conv)[0]
    return phases + columns_by_matrix(shaped(columns, oh * ow, -1), w, out, epilogue, scratch)

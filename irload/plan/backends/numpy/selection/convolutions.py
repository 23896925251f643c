"""Convolutions and poolings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels import conv2d as windows
from irload.plan.backends.numpy.kernels import conv3d as volume
from irload.plan.backends.numpy.kernels import conv_small as small_maps
from irload.plan.backends.numpy.kernels import conv_transpose as transposed
from irload.plan.backends.numpy.kernels import pooling, winograd
from irload.plan.backends.numpy.kernels import weight_streaming as streamed
from irload.plan.backends.numpy.kernels.views import leading
from irload.plan.backends.numpy.selection.selector import Binder, Phases, binds
from irload.plan.ir.steps import Conv, ConvTranspose, Pool


@binds(Conv)
def window(step: Conv, binder: Binder) -> tuple[str, Phases]:
    """A convolution."""
    data, *extra = (binder.view(v) for k, v in enumerate(step.inputs) if k != 1)
    weights, out = binder.weights(step.inputs[1]), binder.view(step.output)
    if len(step.strides) > 2:
        conv = volume.Conv3d(
            np.moveaxis(data, 1, -1),
            weights,
            np.moveaxis(out, 1, -1),
            [np.moveaxis(leading(e, out.ndim), 1, -1) for e in extra],
            step.epilogue,
            step.strides,
            step.dilations,
            list(zip(step.pads_begin, step.pads_end, strict=True)),
        )
        return "im2col of volumes", volume.convolution(conv, binder.scratch, binder.threads)
    one = len(step.strides) == 1
    if one:
        shape = (*weights.shape[:3], 1, *weights.shape[3:])
        weights = replace(weights, source=weights.source.derived("plane", shape, lambda w: w[..., None, :]))
    conv = windows.Conv2d(
        _planar(data, one),
        weights,
        _planar(out, one),
        tuple(_planar_operand(e, out.ndim, one) for e in extra),
        step.epilogue,
        _pair(step.strides, one, 1),
        _pair(step.dilations, one, 1),
        _pads(step.pads_begin, step.pads_end, one),
        binder.storage.frame(step.inputs[0]),
    )
    return binder.choose(
        step,
        {
            name: partial(KERNELS[name], conv, binder.scratch, binder.threads)
            for name in kernels_for(conv, binder.threads, precise=binder.precise)
        },
    )


@binds(ConvTranspose)
def transposed_window(step: ConvTranspose, binder: Binder) -> tuple[str, Phases]:
    """A transposed convolution."""
    weights = binder.weights(step.inputs[1])
    x, out = (np.moveaxis(binder.view(v), 1, -1) for v in (step.inputs[0], step.output))
    w = weights.packed("transposed", transposed.pack_weights)
    conv = transposed.TransposedConv(x, out, weights.shape[3:], step.strides, step.dilations, step.begin)
    return "matmul, then taps", transposed.transposed(conv, w, binder.scratch, binder.threads)


@binds(Pool)
def pool(step: Pool, binder: Binder) -> tuple[str, Phases]:
    """A pooling."""
    axes = map(pooling.Axis, step.kernel, step.strides, step.dilations, step.pads_begin)
    x, out = (np.moveaxis(binder.view(v), 1, -1) for v in (step.inputs[0], step.output))
    return "separable", pooling.pool(step.kind, x, out, list(axes), step.divisor, binder.scratch, binder.threads)


KERNELS = {
    "1x1": windows.pointwise,
    "1x1, line by line": windows.pointwise_lines,
    "1x1, weight streaming": small_maps.pointwise,
    "winograd": winograd.winograd,
    "depthwise": windows.depthwise,
    "im2col": windows.im2col,
    "im2col of a small map": small_maps.im2col,
    "im2col, weight streaming": small_maps.streamed_im2col,
}


def kernels_for(conv: windows.Conv2d, threads: int, *, precise: bool = False) -> list[str]:
    """The kernels that can run a convolution, the best by rule first.

    `precise` rules Winograd out, which errs ten times as much as a plain sum.
    """
    n, oh, ow, o = conv.out.shape
    groups, per_group, depth = conv.w.shape[:3]
    if depth == 1 and per_group == 1 and groups > 1:
        return ["depthwise", "im2col"]
    rows, k = n * oh * ow, depth * conv.kernel[0] * conv.kernel[1]
    whole = groups == 1 and conv.out.flags.c_contiguous
    dozens, first = whole and rows in streamed.SMALL_M, whole and streamed.suits(rows, k, o)
    if conv.kernel == (1, 1) and whole and not any(conv.pads):
        return _ordered(("1x1, weight streaming", dozens, first), ("1x1", True, True))
    if conv.kernel == (1, 1) and groups == 1 and not any(conv.pads) and conv.out.strides[-1] == conv.out.itemsize:
        return ["1x1, line by line"]
    one = n == 1 and whole
    return _ordered(
        ("winograd", winograd.can(conv) and not precise, winograd.suits(conv)),
        ("im2col, weight streaming", one and dozens, one and first),
        ("im2col of a small map", one and threads > 1, windows.is_small_map(rows, threads)),
        ("im2col", True, True),
    )


def _ordered(*kernels: tuple[str, bool, bool]) -> list[str]:
    """The names of (name, can it, should it): those that can, and among them first those that should."""
    able = [(name, should) for name, can, should in kernels if can]
    return [n for n, should in able if should] + [n for n, should in able if not should]


def _planar(a: Array, one: bool) -> Array:
    """[N,H,W,C] of a logical [N,C,H,W], or of [N,C,W] with H = 1."""
    return np.moveaxis(a[:, :, None] if one else a, 1, -1)


def _planar_operand(a: Array, rank: int, one: bool) -> Array:
    """An operand that broadcasts to the logical output, as one that broadcasts to [N,H,W,C]."""
    return _planar(leading(a, rank), one)


def _pair(values: Sequence[int], one: bool, missing: int) -> tuple[int, int]:
    return (missing, values[0]) if one else (values[0], values[1])


def _pads(begin: Sequence[int], end: Sequence[int], one: bool) -> tuple[int, int, int, int]:
    return (0, 0, begin[0], end[0]) if one else (begin[0], end[0], begin[1], end[1])

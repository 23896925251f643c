"""Kernel selection for convolutions and poolings."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from irload.plan.backends.numpy.kernels import conv2d, conv3d, conv_small, pooling, winograd
from irload.plan.backends.numpy.kernels.conv_transpose import transposed
from irload.plan.backends.numpy.selection.quantized import has_bytes, product
from irload.plan.backends.numpy.selection.quantized import pool as pool_bytes
from irload.plan.backends.numpy.selection.selector import NumpySelector, Selected
from irload.plan.ir.steps import ConvStep, ConvTransposeStep, PoolStep


def convolution(step: ConvStep, selector: NumpySelector) -> Selected:
    """Select a kernel for a convolution."""
    if has_bytes(step):
        return product(step, selector)
    data, out = selector.array(step.inputs[0]), selector.array(step.output)
    weights, rank = selector.weights(step.inputs[1]), out.ndim
    plane = rank == 3  # [N,C,X] is convolved as [N,C,1,X]
    if plane:
        shape = (*weights.shape[:3], 1, *weights.shape[3:])
        weights = replace(weights, source=weights.source.derived("plane", shape, lambda w: w[..., None, :]))
    conv = conv2d.Conv(
        np.moveaxis(data[:, :, None] if plane else data, 1, -1),
        weights,
        np.moveaxis(out[:, :, None] if plane else out, 1, -1),
        selector.epilogue(step).channels_last(rank, plane=plane),
        (1,) * plane + step.strides,
        (1,) * plane + step.dilations,
        [*[(0, 0)] * plane, *zip(step.pads_begin, step.pads_end, strict=True)],
    )
    if rank > 4:
        return "im2col of volumes", conv3d.convolution(conv, selector.scratch)
    names = kernels_for(conv, selector.threads, precise=selector.precise)
    kernels = {name: partial(KERNELS[name], conv, selector.scratch) for name in names}
    return selector.choose(step, kernels)


def conv_transpose(step: ConvTransposeStep, selector: NumpySelector) -> Selected:
    """Select a kernel for a transposed convolution."""
    x, out = (np.moveaxis(selector.array(v), 1, -1) for v in (step.inputs[0], step.output))
    epilogue, pads = selector.epilogue(step).channels_last(out.ndim), [(begin, 0) for begin in step.begin]
    conv = conv2d.Conv(x, selector.weights(step.inputs[1]), out, epilogue, step.strides, step.dilations, pads)
    return "matmul, then taps", transposed(conv, selector.scratch)


def pool(step: PoolStep, selector: NumpySelector) -> Selected:
    """Select a kernel for a pooling."""
    if has_bytes(step):
        return pool_bytes(step, selector)
    x, out = (np.moveaxis(selector.array(v), 1, -1) for v in (step.inputs[0], step.output))
    args = (step.windows, step.divisor, selector.scratch)
    return "separable", pooling.pool(step.kind, x, out, *args)


KERNELS = {
    "1x1": conv2d.pointwise,
    "winograd": winograd.winograd,
    "depthwise": conv2d.depthwise,
    "im2col": conv2d.im2col,
    "im2col of a small map": conv_small.im2col,
}


def kernels_for(conv: conv2d.Conv, threads: int, *, precise: bool = False) -> list[str]:
    """Return the kernels that support a convolution, best first.

    `precise` excludes Winograd, whose error is ten times the error of a plain sum.
    """
    n, oh, ow, _ = conv.out.shape
    groups, per_group, depth = conv.w.shape[:3]
    if depth == 1 and per_group == 1 and groups > 1:
        return ["depthwise", "im2col"]
    whole = groups == 1 and conv.out.flags.c_contiguous
    if whole and conv.kernel == (1, 1) and not any(map(any, conv.pads)):
        return ["1x1"]
    return _ordered(
        ("winograd", winograd.can(conv) and not precise, winograd.suits(conv)),
        ("im2col of a small map", whole and n == 1 and threads > 1, conv2d.is_small_map(oh * ow, threads)),
        ("im2col", True, True),
    )


def _ordered(*kernels: tuple[str, bool, bool]) -> list[str]:
    """Return the names from (name, is supported, is preferred): supported ones, preferred ones first."""
    able = [(name, should) for name, can, should in kernels if can]
    return [n for n, should in able if should] + [n for n, should in able if not should]

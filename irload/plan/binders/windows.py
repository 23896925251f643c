"""Convolutions and poolings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from irload.core.tensor import Array
from irload.plan.bind import Binder, Phases, binds
from irload.plan.kernels import pooling, transposed, volume, winograd
from irload.plan.kernels import window as windows
from irload.plan.steps import Pool, TransposedWindow, Window


@binds(Window)
def window(step: Window, binder: Binder) -> tuple[str, Phases]:
    """A convolution."""
    data, *extra = (binder.view(v) for k, v in enumerate(step.inputs) if k != 1)
    weights, out = binder.weights(step.inputs[1]), binder.view(step.output)
    if len(step.strides) > 2:
        conv = volume.Volume(
            np.moveaxis(data, 1, -1),
            weights,
            np.moveaxis(out, 1, -1),
            [np.moveaxis(e.reshape((1,) * (out.ndim - e.ndim) + e.shape), 1, -1) for e in extra],
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
    conv = windows.Conv(
        _planar(data, one),
        weights,
        _planar(out, one),
        tuple(_planar_operand(e, out.ndim, one) for e in extra),
        step.epilogue,
        _pair(step.strides, one, 1),
        _pair(step.dilations, one, 1),
        _pads(step.pads_begin, step.pads_end, one),
    )
    kernel = choose_window(conv, precise=binder.precise)
    run = {"1x1": windows.pointwise, "winograd": winograd.winograd, "depthwise": windows.depthwise}
    return kernel, run.get(kernel, windows.im2col)(conv, binder.scratch, binder.threads)


@binds(TransposedWindow)
def transposed_window(step: TransposedWindow, binder: Binder) -> tuple[str, Phases]:
    """A transposed convolution."""
    weights = binder.weights(step.inputs[1])
    x, out = (np.moveaxis(binder.view(v), 1, -1) for v in (step.inputs[0], step.output))
    w = weights.laid("transposed", transposed.pack_weights)
    conv = transposed.Transposed(x, out, weights.shape[3:], step.strides, step.dilations, step.begin)
    return "matmul, then taps", transposed.transposed(conv, w, binder.scratch, binder.threads)


@binds(Pool)
def pool(step: Pool, binder: Binder) -> tuple[str, Phases]:
    """A pooling."""
    axes = map(pooling.Axis, step.kernel, step.strides, step.dilations, step.pads_begin)
    x, out = (np.moveaxis(binder.view(v), 1, -1) for v in (step.inputs[0], step.output))
    return "separable", pooling.pool(step.kind, x, out, list(axes), step.divisor, binder.scratch, binder.threads)


def choose_window(conv: windows.Conv, *, precise: bool = False) -> str:
    """The kernel for a convolution. `precise` rules Winograd out, which errs ten times as much as a plain sum."""
    groups, per_group, depth = conv.w.shape[:3]
    if conv.kernel == (1, 1) and groups == 1 and not any(conv.pads) and conv.out.flags.c_contiguous:
        return "1x1"
    if depth == 1 and per_group == 1 and groups > 1:
        return "depthwise"
    return "winograd" if winograd.suits(conv) and not precise else "im2col"


def _planar(a: Array, one: bool) -> Array:
    """[N,H,W,C] of a logical [N,C,H,W], or of [N,C,W] with H = 1."""
    return np.moveaxis(a[:, :, None] if one else a, 1, -1)


def _planar_operand(a: Array, rank: int, one: bool) -> Array:
    """An operand that broadcasts to the logical output, as one that broadcasts to [N,H,W,C]."""
    return _planar(a.reshape((1,) * (rank - a.ndim) + a.shape), one)


def _pair(values: Sequence[int], one: bool, missing: int) -> tuple[int, int]:
    return (missing, values[0]) if one else (values[0], values[1])


def _pads(begin: Sequence[int], end: Sequence[int], one: bool) -> tuple[int, int, int, int]:
    return (0, 0, begin[0], end[0]) if one else (begin[0], end[0], begin[1], end[1])

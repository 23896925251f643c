"""Kernel selection for steps on rows: softmax, normalisation, reductions, rotary embedding."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.plan.backends.channels_last import is_channels_last
from irload.plan.backends.numpy.kernels import group_norm as groups
from irload.plan.backends.numpy.kernels import rotary, rows
from irload.plan.backends.numpy.kernels.calls import Phases
from irload.plan.backends.numpy.kernels.copying import dense, dense_target
from irload.plan.backends.numpy.kernels.views import shaped
from irload.plan.backends.numpy.measured import SOFTMAX_COLUMNS
from irload.plan.backends.numpy.selection.selector import NumpySelector, Selected
from irload.plan.ir.steps import GroupNormalizeStep, NormalizeStep, ReduceStep, RotaryEmbeddingStep, SoftmaxStep


def reduce(step: ReduceStep, selector: NumpySelector) -> Selected:
    """Select a kernel for a reduction over adjacent axes. Channels-last data are reduced without a transpose."""
    source, out, axes = selector.array(step.inputs[0]), selector.array(step.output), step.axes
    if is_channels_last(selector.memory, step.inputs[0]) and axes[0] >= 2:
        source, out, axes = np.moveaxis(source, 1, -1), np.moveaxis(out, 1, -1), tuple(a - 1 for a in axes)
    phases: Phases = []
    source = dense(source, selector.scratch, phases)
    count = prod(source.shape[: axes[0]])
    after = prod(source.shape[axes[-1] + 1 :])
    result, store = dense_target(out, selector.scratch)
    cube, flat = shaped(source, count, -1, after), shaped(result, count, after)
    return f"{step.kind} of rows", [*phases, rows.reduce(step.kind, cube, flat, selector.threads), *store]


def softmax(step: SoftmaxStep, selector: NumpySelector) -> Selected:
    """Select a kernel for a softmax; an axis with few columns after it is transposed."""
    x, out = selector.array(step.inputs[0]), selector.array(step.output)
    n, columns = x.shape[step.axis], prod(x.shape[step.axis + 1 :])
    if columns >= SOFTMAX_COLUMNS and x.flags.c_contiguous and out.flags.c_contiguous:
        source, target = (shaped(a, -1, n, columns) for a in (x, out))
        return "columns", [rows.softmax_across(source, target, selector.scratch)]
    source, out = (np.moveaxis(selector.array(v), step.axis, -1) for v in (step.inputs[0], step.output))
    phases: Phases = []
    x = dense(source, selector.scratch, phases)
    target, store = dense_target(out, selector.scratch, None if x is source else x)
    phases.append(rows.softmax(shaped(x, -1, n), shaped(target, -1, n), selector.scratch))
    return "rows, moved" if store else "rows", phases + store


def normalize(step: NormalizeStep, selector: NumpySelector) -> Selected:
    """Select a kernel for a normalisation."""
    source, out = selector.array(step.inputs[0]), selector.array(step.output)
    width = prod(source.shape[-len(step.axes) :])
    phases: Phases = []
    x = dense(source, selector.scratch, phases)
    target, store = dense_target(out, selector.scratch, None if x is source else x)
    x, flat = shaped(x, -1, width), shaped(target, -1, width)
    epilogue = selector.epilogue(step).flattened(out.shape, flat.shape, selector.scratch, phases)
    args = (step.eps, step.center, step.outside, epilogue, selector.scratch)
    return "rows", [*phases, rows.normalize(x, flat, *args), *store]


def group_normalize(step: GroupNormalizeStep, selector: NumpySelector) -> Selected:
    """Select a kernel for a group normalisation; other layouts are converted to channels-last."""
    x, gamma, beta = (selector.array(v) for v in step.inputs)
    out = np.moveaxis(selector.array(step.output), 1, -1)
    phases: Phases = []
    turned = dense(np.moveaxis(x, 1, -1), selector.scratch, phases)
    target, store = dense_target(out, selector.scratch)
    flat = (x.shape[0], -1, x.shape[1])
    args = (step.groups, step.eps, selector.scratch)
    phases.append(groups.group_normalize(shaped(turned, *flat), gamma, beta, shaped(target, *flat), *args))
    return "groups", phases + store


def rotary_embedding(step: RotaryEmbeddingStep, selector: NumpySelector) -> Selected:
    """Select a kernel for a rotary embedding."""
    x, cosine, sine = (selector.array(v) for v in step.inputs)
    return "halves", [rotary.rotate(x, cosine, sine, selector.array(step.output), selector.scratch)]

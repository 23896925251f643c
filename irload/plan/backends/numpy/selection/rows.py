"""What works on rows: softmax, normalisation, reductions, rotation."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.plan.backends.numpy.kernels import group_norm as groups
from irload.plan.backends.numpy.kernels import rotary, rows
from irload.plan.backends.numpy.kernels.copying import dense, dense_target
from irload.plan.backends.numpy.kernels.epilogue import flattened
from irload.plan.backends.numpy.kernels.views import shaped
from irload.plan.backends.numpy.selection.selector import Binder, Phases, binds
from irload.plan.ir.steps import GroupNormalize, Normalize, Reduce, RotaryEmbedding, Softmax


@binds(Reduce)
def reduce(step: Reduce, binder: Binder) -> tuple[str, Phases]:
    """A reduction over neighbouring axes. What lies channels last does so until the result is stored."""
    source, out, axes = binder.view(step.inputs[0]), binder.view(step.output), step.axes
    if step.inputs[0].channels_last and axes[0] >= 2:
        source, out, axes = np.moveaxis(source, 1, -1), np.moveaxis(out, 1, -1), tuple(a - 1 for a in axes)
    phases: Phases = []
    source = dense(source, binder.scratch, binder.threads, phases)
    count = prod(source.shape[: axes[0]])
    after = prod(source.shape[axes[-1] + 1 :])
    result, store = dense_target(out, binder.scratch, binder.threads)
    cube, flat = shaped(source, count, -1, after), shaped(result, count, after)
    return f"{step.kind} of rows", [*phases, rows.reduce(step.kind, cube, flat, binder.threads), *store]


@binds(Softmax)
def softmax(step: Softmax, binder: Binder) -> tuple[str, Phases]:
    """A softmax; an axis that is not the last one is moved there."""
    source, out = (np.moveaxis(binder.view(v), step.axis, -1) for v in (step.inputs[0], step.output))
    phases: Phases = []
    x = dense(source, binder.scratch, binder.threads, phases)
    target, store = dense_target(out, binder.scratch, binder.threads, None if x is source else x)
    n = source.shape[-1]
    phases.append(rows.softmax(shaped(x, -1, n), shaped(target, -1, n), binder.scratch, binder.threads))
    return "rows, moved" if store else "rows", phases + store


@binds(Normalize)
def normalize(step: Normalize, binder: Binder) -> tuple[str, Phases]:
    """A normalisation."""
    source, *extra = (binder.view(v) for v in step.inputs)
    out = binder.view(step.output)
    width = prod(source.shape[-len(step.axes) :])
    phases: Phases = []
    x = dense(source, binder.scratch, binder.threads, phases)
    target, store = dense_target(out, binder.scratch, binder.threads, None if x is source else x)
    x, flat = shaped(x, -1, width), shaped(target, -1, width)
    wide = [flattened(e, out.shape, flat.shape, binder.scratch, phases) for e in extra]
    args = (step.eps, step.center, wide, step.epilogue, binder.scratch, binder.threads)
    return "rows", [*phases, rows.normalize(x, flat, *args), *store]


@binds(GroupNormalize)
def group_normalize(step: GroupNormalize, binder: Binder) -> tuple[str, Phases]:
    """A group normalisation; data that does not lie channels last is turned so."""
    x, gamma, beta = (binder.view(v) for v in step.inputs)
    out = np.moveaxis(binder.view(step.output), 1, -1)
    phases: Phases = []
    turned = dense(np.moveaxis(x, 1, -1), binder.scratch, binder.threads, phases)
    target, store = dense_target(out, binder.scratch, binder.threads)
    flat = (x.shape[0], -1, x.shape[1])
    args = (step.groups, step.eps, binder.scratch, binder.threads)
    phases.append(groups.group_normalize(shaped(turned, *flat), gamma, beta, shaped(target, *flat), *args))
    return "groups", phases + store


@binds(RotaryEmbedding)
def rotate(step: RotaryEmbedding, binder: Binder) -> tuple[str, Phases]:
    """A rotary embedding."""
    x, cosine, sine = (binder.view(v) for v in step.inputs)
    return "halves", [rotary.rotate(x, cosine, sine, binder.view(step.output), binder.scratch, binder.threads)]

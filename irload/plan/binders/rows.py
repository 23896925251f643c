"""What works on rows: softmax, normalisation, reductions, rotation."""

from __future__ import annotations

import numpy as np

from irload.plan.bind import Binder, Phases, binds
from irload.plan.kernels import groups, rotary, rows
from irload.plan.kernels.copying import copy
from irload.plan.steps import GroupNormalize, Normalize, Reduce, Rotate, Softmax


@binds(Reduce)
def reduce(step: Reduce, binder: Binder) -> tuple[str, Phases]:
    """A reduction over neighbouring axes."""
    source, out = binder.view(step.inputs[0]), binder.view(step.output)
    rank, axes = source.ndim, step.axes
    if step.inputs[0].channels_last and axes[0] >= 2:
        source, axes = np.moveaxis(source, 1, -1), tuple(a - 1 for a in axes)
    phases: Phases = []
    if not source.flags.c_contiguous:
        dense = binder.scratch.take(source.shape)
        phases += copy(dense, source, binder.threads)
        source = dense
    count = int(np.prod(source.shape[: axes[0]]))
    after = int(np.prod(source.shape[axes[-1] + 1 :]))
    cube = source.reshape(count, -1, after)
    assert rank == source.ndim
    flat = np.moveaxis(out, 1, -1) if step.output.channels_last else out
    target = flat.reshape(count, after)
    result = target if np.shares_memory(target, out) else binder.scratch.take((count, after))
    phases.append(rows.reduce(step.kind, cube, result, binder.threads))
    if result is not target:
        phases.append([[(np.copyto, (out, result.reshape(out.shape)))]])
    return f"{step.kind} of rows", phases


@binds(Softmax)
def softmax(step: Softmax, binder: Binder) -> tuple[str, Phases]:
    """A softmax."""
    source, out = binder.view(step.inputs[0]), binder.view(step.output)
    last = step.axis == source.ndim - 1
    if last and source.flags.c_contiguous and out.flags.c_contiguous:
        n = source.shape[-1]
        return "rows", [rows.softmax(source.reshape(-1, n), out.reshape(-1, n), binder.scratch, binder.threads)]
    moved = np.moveaxis(source, step.axis, -1)
    dense = binder.scratch.take(moved.shape)
    n = dense.shape[-1]
    phases = copy(dense, moved, binder.threads)
    phases.append(rows.softmax(dense.reshape(-1, n), dense.reshape(-1, n), binder.scratch, binder.threads))
    return "rows, moved", phases + copy(np.moveaxis(out, step.axis, -1), dense, binder.threads)


@binds(Normalize)
def normalize(step: Normalize, binder: Binder) -> tuple[str, Phases]:
    """A normalisation."""
    source, *extra = (binder.view(v) for v in step.inputs)
    out = binder.view(step.output)
    width = int(np.prod(source.shape[-len(step.axes) :]))
    phases: Phases = []
    x = source
    if not source.flags.c_contiguous:
        x = binder.scratch.take(source.shape)
        phases += copy(x, source, binder.threads)
    target = out if out.flags.c_contiguous else binder.scratch.take(out.shape)
    wide = [np.broadcast_to(e, out.shape).reshape(-1, width) for e in extra]
    phases.append(
        rows.normalize(
            x.reshape(-1, width),
            target.reshape(-1, width),
            step.eps,
            step.center,
            wide,
            step.epilogue,
            binder.scratch,
            binder.threads,
        )
    )
    return "rows", phases + ([] if target is out else copy(out, target, binder.threads))


@binds(GroupNormalize)
def group_normalize(step: GroupNormalize, binder: Binder) -> tuple[str, Phases]:
    """A group normalisation; data that does not lie channels last is turned so."""
    x, gamma, beta = (binder.view(v) for v in step.inputs)
    out = binder.view(step.output)
    turned, target = np.moveaxis(x, 1, -1), np.moveaxis(out, 1, -1)
    phases: Phases = []
    if not turned.flags.c_contiguous:
        dense = binder.scratch.take(turned.shape)
        phases += copy(dense, turned, binder.threads)
        turned = dense
    result = target if target.flags.c_contiguous else binder.scratch.take(target.shape)
    flat = (x.shape[0], -1, x.shape[1])
    args = (step.groups, step.eps, binder.scratch, binder.threads)
    phases.append(groups.group_normalize(turned.reshape(flat), gamma, beta, result.reshape(flat), *args))
    return "groups", phases + ([] if result is target else copy(target, result, binder.threads))


@binds(Rotate)
def rotate(step: Rotate, binder: Binder) -> tuple[str, Phases]:
    """A rotary embedding."""
    x, cosine, sine = (binder.view(v) for v in step.inputs)
    return "halves", [rotary.rotate(x, cosine, sine, binder.view(step.output), binder.scratch, binder.threads)]

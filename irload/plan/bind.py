"""Binding: a program and its storage become a table of calls on fixed views of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irload.core.op import evaluate
from irload.core.tensor import Array
from irload.errors import IRError
from irload.plan.kernels import attention, pooling, product, rows, window, winograd
from irload.plan.kernels.calls import Part, Scratch
from irload.plan.kernels.map import map_parts
from irload.plan.kernels.tiles import cut
from irload.plan.program import Step, Value
from irload.plan.steps import (
    Attention,
    Compute,
    Cut,
    Join,
    Look,
    Map,
    Normalize,
    Permute,
    Pool,
    Product,
    Reduce,
    Softmax,
    Spread,
    View,
    Window,
)
from irload.plan.storage import Storage

Phases = list[list[Part]]
"""Phases follow each other; the parts of a phase may run at the same time."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One step ready to run: its phases, and the name of the kernel that was chosen."""

    step: Step
    phases: Phases
    kernel: str


class Binder:
    """Chooses a kernel for each step, by rule on shapes and attributes."""

    def __init__(
        self, storage: Storage, threads: int, packs: dict[tuple[str, int], tuple[Array, Array]], run: RunCell
    ) -> None:
        self.storage = storage
        self.threads = threads
        self.packs = packs
        self.scratch = Scratch()
        self.run = run

    def bind(self, step: Step) -> Bound | None:
        """The step's calls, None where its output is a view that needs none."""
        self.scratch.reset()
        kernel, phases = _TABLE[type(step)](self, step)
        phases = [[part for part in phase if part] for phase in phases]
        phases = [phase for phase in phases if phase]
        return Bound(step, phases, kernel) if phases else None

    def view(self, value: Value) -> Array:
        """The array of a value."""
        return self.storage.view(value)

    def pack(self, kind: str, weights: Array, how: Callable[[Array], Array]) -> Array:
        """Weights as a kernel wants them; made once for all plans of a model."""
        key = (kind, id(weights))
        if key not in self.packs:
            self.packs[key] = (weights, how(weights))  # the original is kept, so that its id stays its own
        return self.packs[key][1]

    # -- one method a step -----------------------------------------------------------------------------------------

    def compute(self, step: Step) -> tuple[str, Phases]:
        assert isinstance(step, Compute)
        inputs, outputs = [self.view(v) for v in step.inputs], [self.view(v) for v in step.outputs]
        return "compute", [[[(_compute, (step, inputs, outputs, self.run))]]]

    def moved(self, step: Step) -> tuple[str, Phases]:
        """Nothing where the output is a view, else a copy."""
        assert isinstance(step, Look)
        if self.storage.is_alias(step.output):
            return "view", []
        source, out = self.view(step.inputs[0]), self.view(step.output)
        try:
            return "copy", _copy(out, step.look(source), self.threads)
        except ValueError:
            return "copy", [[[(_reshape_into, (out, source))]]]

    def map(self, step: Step) -> tuple[str, Phases]:
        assert isinstance(step, Map)
        out, operands = self.view(step.output), [self.view(v) for v in step.inputs]
        return "tiles", [map_parts(step.expression, operands, out, self.scratch, self.threads)]

    def product(self, step: Step) -> tuple[str, Phases]:
        assert isinstance(step, Product)
        a, b, *extra = (self.view(v) for v in step.inputs)
        out = self.view(step.output)
        a = a.swapaxes(-1, -2) if step.transpose_a else a
        flat = _as_rows(a), _as_rows(out)
        plain = b.ndim == 2 and flat[0] is not None and flat[1] is not None
        if step.transpose_b and step.inputs[1].constant is not None and plain and flat[1] is not None:
            rows_of = flat[1].shape[0]
            if flat[0] is not None and rows_of in product.DOZENS:
                wide = [np.broadcast_to(e, out.shape).reshape(flat[1].shape) if e.size > 1 else e for e in extra]
                make = product.weights_first
                return "weights first", [make(flat[0], b, flat[1], wide, step.epilogue, self.scratch, self.threads)]
            # A single row is a matrix–vector product, which takes weights either way.
            b = b.T if rows_of == 1 else self.pack("transpose", b, _transposed)
        elif step.transpose_b:
            b = b.swapaxes(-1, -2)
        if b.ndim == 2 and flat[0] is not None and flat[1] is not None:
            wide = [np.broadcast_to(e, out.shape).reshape(flat[1].shape) if e.size > 1 else e for e in extra]
            few = flat[1].shape[0] < 16 * self.threads
            make = product.columns_by_matrix if few else product.rows_by_matrix
            kernel = "matmul by columns" if few else "matmul by rows"
            return kernel, [make(flat[0], b, flat[1], wide, step.epilogue, self.scratch, self.threads)]
        if out.ndim == 2:
            make = product.rows_by_matrix
            return "matmul by rows", [make(a, b, out, extra, step.epilogue, self.scratch, self.threads)]
        lead = int(np.prod(out.shape[:-2]))
        stacked = [_stack(x, out.shape[:-2], lead) for x in (a, b, out)]
        if stacked[2] is not None and stacked[0] is not None and stacked[1] is not None and not extra:
            a, b, out = stacked[0], stacked[1], stacked[2]
        return "batched matmul", product.batched(a, b, out, extra, step.epilogue, self.scratch, self.threads)

    def window(self, step: Step) -> tuple[str, Phases]:
        assert isinstance(step, Window)
        data, weights, *extra = (self.view(v) for v in step.inputs)
        out = self.view(step.output)
        one = len(step.strides) == 1
        conv = window.Conv(
            _planar(data, one),
            weights[:, :, :, None] if one else weights,
            _planar(out, one),
            tuple(_planar_operand(e, out.ndim, one) for e in extra),
            step.epilogue,
            _pair(step.strides, one, 1),
            _pair(step.dilations, one, 1),
            _pads(step.pads_begin, step.pads_end, one),
        )
        kernel = choose_window(conv)
        run = {"1x1": window.pointwise, "winograd": winograd.winograd, "depthwise": window.depthwise}
        return kernel, run.get(kernel, window.im2col)(conv, self.pack, self.scratch, self.threads)

    def pool(self, step: Step) -> tuple[str, Phases]:
        assert isinstance(step, Pool)
        one = len(step.kernel) == 1
        return "separable", pooling.pool(
            step.kind,
            _planar(self.view(step.inputs[0]), one),
            _planar(self.view(step.output), one),
            _pair(step.kernel, one, 1),
            _pair(step.strides, one, 1),
            _pads(step.pads_begin, step.pads_end, one),
            step.divisor,
            self.scratch,
            self.threads,
        )

    def reduce(self, step: Step) -> tuple[str, Phases]:
        assert isinstance(step, Reduce)
        source, out = self.view(step.inputs[0]), self.view(step.output)
        rank, axes = source.ndim, step.axes
        if step.inputs[0].channels_last and axes[0] >= 2:
            source, axes = np.moveaxis(source, 1, -1), tuple(a - 1 for a in axes)
        phases: Phases = []
        if not source.flags.c_contiguous:
            dense = self.scratch.take(source.shape)
            phases += _copy(dense, source, self.threads)
            source = dense
        count = int(np.prod(source.shape[: axes[0]]))
        after = int(np.prod(source.shape[axes[-1] + 1 :]))
        cube = source.reshape(count, -1, after)
        assert rank == source.ndim
        flat = np.moveaxis(out, 1, -1) if step.output.channels_last else out
        target = flat.reshape(count, after)
        result = target if np.shares_memory(target, out) else self.scratch.take((count, after))
        phases.append(rows.reduce(step.kind, cube, result, self.threads))
        if result is not target:
            phases.append([[(np.copyto, (out, result.reshape(out.shape)))]])
        return f"{step.kind} of rows", phases

    def softmax(self, step: Step) -> tuple[str, Phases]:
        assert isinstance(step, Softmax)
        source, out = self.view(step.inputs[0]), self.view(step.output)
        last = step.axis == source.ndim - 1
        if last and source.flags.c_contiguous and out.flags.c_contiguous:
            n = source.shape[-1]
            return "rows", [rows.softmax(source.reshape(-1, n), out.reshape(-1, n), self.scratch, self.threads)]
        moved = np.moveaxis(source, step.axis, -1)
        dense = self.scratch.take(moved.shape)
        n = dense.shape[-1]
        phases = _copy(dense, moved, self.threads)
        phases.append(rows.softmax(dense.reshape(-1, n), dense.reshape(-1, n), self.scratch, self.threads))
        return "rows, moved", phases + _copy(np.moveaxis(out, step.axis, -1), dense, self.threads)

    def normalize(self, step: Step) -> tuple[str, Phases]:
        assert isinstance(step, Normalize)
        source, *extra = (self.view(v) for v in step.inputs)
        out = self.view(step.output)
        width = int(np.prod(source.shape[-len(step.axes) :]))
        phases: Phases = []
        x = source
        if not source.flags.c_contiguous:
            x = self.scratch.take(source.shape)
            phases += _copy(x, source, self.threads)
        target = out if out.flags.c_contiguous else self.scratch.take(out.shape)
        wide = [np.broadcast_to(e, out.shape).reshape(-1, width) for e in extra]
        phases.append(
            rows.normalize(
                x.reshape(-1, width),
                target.reshape(-1, width),
                step.eps,
                step.center,
                wide,
                step.epilogue,
                self.scratch,
                self.threads,
            )
        )
        return "rows", phases + ([] if target is out else _copy(out, target, self.threads))

    def attention(self, step: Step) -> tuple[str, Phases]:
        assert isinstance(step, Attention)
        q, k, v, *rest = (self.view(x) for x in step.inputs)
        out = self.view(step.output)
        heads = int(np.prod(out.shape[:-2]))
        phases: Phases = []
        flat: list[Array] = []
        for x in (q, k, v):
            stacked = _stack(x, out.shape[:-2], heads)
            if stacked is None:
                dense = self.scratch.take(x.shape)
                phases += _copy(dense, x, self.threads)
                stacked = dense.reshape(heads, *x.shape[-2:])
            flat.append(stacked)
        scores = (*out.shape[:-1], k.shape[-2])
        mask = np.broadcast_to(rest[0], scores).reshape(heads, *scores[-2:]) if rest else None
        target = _stack(out, out.shape[:-2], heads)
        result = self.scratch.take((heads, *out.shape[-2:])) if target is None else target
        phases.append(
            attention.attention(flat[0], flat[1], flat[2], mask, result, step.scale, self.scratch, self.threads)
        )
        if target is None:
            phases += _copy(out, result.reshape(out.shape), self.threads)
        return "head by head", phases

    def join(self, step: Step) -> tuple[str, Phases]:
        assert isinstance(step, Join)
        out, start = self.view(step.output), 0
        part: Part = []
        for k, value in enumerate(step.inputs):
            index = (*(slice(None),) * step.axis, slice(start, start + value.shape[step.axis]))
            start += value.shape[step.axis]
            if (step, k) not in self.storage.joined and value.size:
                part.append((np.copyto, (out[index], self.view(value))))
        return "slices", [[part]]


def choose_window(conv: window.Conv) -> str:
    """The kernel for a convolution."""
    groups, per_group, depth = conv.w.shape[:3]
    if conv.kernel == (1, 1) and groups == 1 and not any(conv.pads) and conv.out.flags.c_contiguous:
        return "1x1"
    if depth == 1 and per_group == 1 and groups > 1:
        return "depthwise"
    return "winograd" if winograd.suits(conv) else "im2col"


class RunCell:
    """Holds the inference under way, for the operations that ask their context for something."""

    def __init__(self, file: str | None = None) -> None:
        self.file = file
        self.context: Any = None


def _compute(step: Compute, inputs: Sequence[Array], outputs: Sequence[Array], run: RunCell) -> None:
    try:
        if run.context is not None:
            run.context.outputs = step.types
        results = evaluate(step.op, inputs, step.types, run.context)
    except IRError as error:
        raise error.at(step.origin[0].where(run.file)) from error.__cause__
    for out, result in zip(outputs, results, strict=True):
        np.copyto(out, result)


def _reshape_into(out: Array, source: Array) -> None:
    np.copyto(out, source.reshape(out.shape))


def _transposed(w: Array) -> Array:
    return np.ascontiguousarray(w.swapaxes(-1, -2))


def _copy(out: Array, source: Array, threads: int) -> Phases:
    """A copy, cut along the first axis that is long enough."""
    axis = next((k for k, n in enumerate(out.shape) if n >= threads), 0)
    if out.size < 1 << 14 or not out.ndim:
        return [[[(np.copyto, (out, source))]]]
    lead = (slice(None),) * axis
    return [
        [
            [(np.copyto, (out[(*lead, slice(a, b))], source[(*lead, slice(a, b))]))]
            for a, b in cut(out.shape[axis], threads)
        ]
    ]


def _as_rows(a: Array) -> Array | None:
    """[rows, n] of an array whose leading axes merge without a copy."""
    try:
        return np.reshape(a, (-1, a.shape[-1]), copy=False)
    except ValueError:
        return None


def _stack(a: Array, lead: tuple[int, ...], count: int) -> Array | None:
    """[count, rows, columns] of an array whose leading axes are `lead` and merge without a copy."""
    if a.shape[:-2] != lead:
        return None
    try:
        return np.reshape(a, (count, *a.shape[-2:]), copy=False)
    except ValueError:
        return None


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


_TABLE: dict[type[Step], Callable[[Binder, Step], tuple[str, Phases]]] = {
    Compute: Binder.compute,
    View: Binder.moved,
    Permute: Binder.moved,
    Cut: Binder.moved,
    Spread: Binder.moved,
    Map: Binder.map,
    Product: Binder.product,
    Window: Binder.window,
    Pool: Binder.pool,
    Reduce: Binder.reduce,
    Softmax: Binder.softmax,
    Normalize: Binder.normalize,
    Attention: Binder.attention,
    Join: Binder.join,
}

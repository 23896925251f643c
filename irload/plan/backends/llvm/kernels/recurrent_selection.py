"""The kernels of recurrent networks: a product of all inputs, then the recurrence."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.access import Access
from irload.plan.backends.llvm.kernels.product import Product
from irload.plan.backends.llvm.kernels.recurrent import PackedPhase, Recurrence
from irload.plan.backends.llvm.kernels.recurrent_cells import PHASES
from irload.plan.backends.llvm.kernels.sharing import shared
from irload.plan.backends.llvm.pack import aligned_f32, panels
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tile import Level, tile_shape
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.steps import Recurrent

BLOCK = 16
"""Samples for which the weights of a panel are read once a step."""

_ADD = Expression(2, (Instruction("add", (0, 1)),))


def select_recurrent(step: Recurrent, selector: Selector) -> list[Launch]:
    """The kernels of a recurrent network."""
    x, *first = (selector.array(v) for v in step.inputs[:-3])
    y, *last = (selector.array(v) for v in step.outputs)
    batch, directions, length, hidden = y.shape
    lanes = selector.target.lanes
    block = min(BLOCK, max(1, -(-batch * directions // selector.threads)), batch)
    kind: type[Recurrence] = Recurrence
    if selector.bf16:
        from irload.plan.backends.llvm.kernels.bf16_recurrent_selection import bf16_kind  # f32 needs it not

        kind = bf16_kind(step, selector.target)
    phases = tuple(kind.packed(selector.target, phase, block, hidden) for phase in PHASES[step.cell])
    width = sum(p.width(hidden, lanes) for p in phases)
    gates = selector.temporary(4 * directions * batch * length * width)
    w, r, b = step.inputs[-3:]

    def pack_all(weights: Array) -> Array:
        return np.concatenate([ordered(weights, p, hidden, lanes) for p in phases], 1)

    how = (step.cell, kind.__name__, lanes, *(p.vectors for p in phases))
    bias = selector.packed(b, ("bias", *how), lambda b: _aligned(pack_all(b[..., None])))
    hiddens = [
        selector.packed(r, ("hidden", k, *how), lambda r, p=p: kind.pack(ordered(r, p, hidden, lanes), lanes, p.panel))
        for k, p in enumerate(phases)
    ]
    recurrence = kind(
        lanes,
        phases,
        step.backwards,
        batch,
        block,
        length,
        hidden,
        y.strides,
        tuple(s.strides for pair in zip(first, last, strict=True) for s in pair),
    )
    inner = None
    if any(p.phase.apart for p in phases):
        inner = selector.packed(b, ("inner", *how), lambda b: _inner(b, hidden, recurrence.pitch // 4))
    if kind.element == F32:
        rows, vectors = tile_shape(selector.target, max(length, batch), width)
        inputs = selector.packed(w, ("inputs", vectors, *how), lambda w: panels(pack_all(w), lanes, vectors))
        product = _inputs(x, directions, width, inputs.shape[1:], lanes, rows, vectors)
        product = shared(product, selector.threads, x.nbytes, inputs.nbytes)
        launches = [selector.launch(product, [x, inputs, gates, bias])]
    else:
        from irload.plan.backends.llvm.kernels.bf16_recurrent_selection import bf16_inputs, pack_inputs

        inputs = selector.packed(w, ("inputs", *how), lambda w: pack_inputs(pack_all(w)))
        launches = bf16_inputs(x, inputs, gates, bias, _ADD, selector)
    states = [s for pair in zip(first, last, strict=True) for s in pair]
    return [*launches, selector.launch(recurrence, [gates, *hiddens, inner, y, *states])]


def ordered(weights: Array, packed: PackedPhase, hidden: int, lanes: int) -> Array:
    """Weights [directions, gates·hidden, …] in the order of a phase's panels, filled up with zeros."""
    count = packed.panels(hidden, lanes) * packed.vectors * lanes
    blocks = weights[:, : weights.shape[1] // hidden * hidden].reshape(len(weights), -1, hidden, weights.shape[-1])
    found = np.zeros((len(weights), len(packed.phase.gates), count, weights.shape[-1]), np.float32)
    found[:, :, :hidden] = blocks[:, list(packed.phase.gates)]
    return (
        found.reshape(*found.shape[:2], -1, lanes, found.shape[-1])
        .swapaxes(1, 2)
        .reshape(len(weights), -1, weights.shape[-1])
    )


def _inner(bias: Array, hidden: int, pitch: int) -> Array:
    """[directions, pitch]: the last part of the bias."""
    found = aligned_f32((len(bias), pitch))
    found[:, :hidden], found[:, hidden:] = bias[:, -hidden:], 0
    return found


def _aligned(array: Array) -> Array:
    found = aligned_f32(array.shape)
    found[...] = array
    return found


def _inputs(
    x: Array, directions: int, width: int, panel: tuple[int, ...], lanes: int, rows: int, vectors: int
) -> Product:
    """gates[direction, sample, time] = x[sample, time] · weights[direction] + bias[direction]."""
    batch, length, depth = x.shape
    row = width * 4
    sizes, strides, places = (batch, length), x.strides[:2], (length * row, row)
    if batch > length:
        sizes, strides, places = sizes[::-1], strides[::-1], places[::-1]
    return Product(
        lanes,
        (directions, sizes[0]),
        sizes[1],
        width,
        (Level(depth, x.strides[2]),),
        Access((0, strides[0]), strides[1]),
        Access((batch * length * row, places[0]), places[1], 4),
        (Access((row, 0), 0, 4),),
        _ADD,
        rows,
        vectors,
        vectors,
        (int(np.prod(panel)) * 4, 0),
    )

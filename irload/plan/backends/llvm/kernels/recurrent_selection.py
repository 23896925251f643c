"""Selects the kernels of recurrent networks: the product of all inputs by their weights, then the recurrence."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irload.core.tensor import Array
from irload.plan.backends.llvm.dot import FMA, Dot, dots
from irload.plan.backends.llvm.elements import BF16
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.kernels.matmul import RowContraction
from irload.plan.backends.llvm.kernels.recurrent import Recurrence
from irload.plan.backends.llvm.kernels.recurrent_sums import PHASES, PackedPhase, StateSums, TileStateSums
from irload.plan.backends.llvm.kernels.weights import pack_weights
from irload.plan.backends.llvm.packing import Packing
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tuning import LEAST_RECURRENT, LEAST_STATE, SAMPLES
from irload.plan.backends.llvm.weight_memory import aligned_copy
from irload.plan.ir.expression import ADD
from irload.plan.ir.steps import RecurrentStep


def select_recurrent(step: RecurrentStep, selector: Selector) -> list[Launch]:
    """The kernels of a recurrent network."""
    first = [selector.array(v) for v in step.states]
    y, *last = (selector.array(v) for v in step.outputs)
    batch, directions, length, hidden = y.shape
    lanes = selector.target.lanes
    lengths = next((selector.array(v) for v in step.lengths), None)
    block = min(SAMPLES, max(1, -(-batch * directions // selector.threads)), batch)
    sums = _sums(step, selector, hidden, block)
    phases = tuple(sums.packed(selector.target, phase) for phase in PHASES[step.cell])
    width = sum(p.width(hidden, lanes) for p in phases)
    gates = selector.temporary(4 * directions * batch * length * width)
    _, r, b = step.weights

    def pack_all(weights: Array) -> Array:
        return np.concatenate([ordered(weights, p, hidden, lanes) for p in phases], 1)

    def pack(weights: Array, packing: Packing) -> Array:
        return pack_weights(weights, packing, selector.target, selector.threads)

    key = (step.cell, sums.dot.a, lanes, *(p.vectors for p in phases))
    bias = selector.packed(b, ("bias", *key), lambda b: aligned_copy(pack_all(b[..., None])))
    packings = [Packing.read_by(sums.dot, lanes, p.panel) for p in phases]
    hiddens = [
        selector.packed(r, ("hidden", k, *key), lambda r, k=k: pack(ordered(r, phases[k], hidden, lanes), packings[k]))
        for k in range(len(phases))
    ]
    states = [s for pair in zip(first, last, strict=True) for s in pair]
    strides = y.strides, tuple(s.strides for s in states), None if lengths is None else lengths.strides[0]
    recurrence = Recurrence(lanes, phases, sums, step.backwards, batch, length, *strides)
    inner = None
    if any(p.phase.apart for p in phases):
        pad = (0, 0), (0, recurrence.pitch // 4 - hidden)
        inner = selector.packed(b, ("inner", *key), lambda b: aligned_copy(np.pad(b[:, -hidden:], pad)))
    launches = input_gates(step, pack_all, key, gates, bias, sums.dot, selector)
    return [*launches, selector.launch(recurrence, [gates, lengths, *hiddens, inner, y, *states])]


def input_gates(
    step: RecurrentStep,
    arrange: Callable[[Array], Array],
    key: Hashable,
    gates: Temporary,
    bias: Array,
    dot: Dot,
    selector: Selector,
) -> list[Launch]:
    """gates[direction, sample, time] = x[sample, time] · w[direction] + bias[direction], in f32.

    `bias` is [directions, width, 1]. `arrange` orders the constant weights as [directions, width, depth]; `key`
    identifies the order.
    """
    x = selector.array(step.inputs[0])
    (batch, length, _), (directions, width, _) = x.shape, bias.shape
    row = width * bias.itemsize
    strides = (batch * length * row, length * row, row, bias.itemsize)
    laid = as_strided(bias, (directions, batch, length, width), strides)  # the layout of the gates, not their memory
    tensors = [laid, np.broadcast_to(bias[:, None, None, :, 0], laid.shape)]
    if batch > length:
        x, tensors = x.swapaxes(0, 1), [tensor.swapaxes(1, 2) for tensor in tensors]
    rows = RowContraction.of(step.inputs[0], x, (directions, 1), tensors, ADD, dot, selector)

    def pack(weights: Array) -> Array:
        return pack_weights(arrange(weights), rows.packing, selector.target, selector.threads)

    packed = selector.packed(step.weights[0], ("inputs", rows.packing, key), pack)
    return [*rows.copies, rows.launch(packed, [gates, bias], selector)]


def _sums(step: RecurrentStep, selector: Selector, hidden: int, block: int) -> StateSums:
    """The micro-kernel of the products with the state: in f32 if bf16 would not be faster."""
    batch, directions, length, _ = step.outputs[0].shape
    depth, gates = step.inputs[0].shape[-1], step.weights[1].shape[1]
    products = batch * directions * length * gates * (depth + hidden)
    if not selector.bf16 or max(depth, hidden) < LEAST_STATE or products < LEAST_RECURRENT:
        return StateSums(FMA, hidden, block)
    # tiles for one sample, too: 100 steps of LSTM(256 → 256) take 0.53 ms, 0.66 by AVX512_BF16 (Sapphire Rapids)
    dot = dots(selector.target)[BF16]
    return (TileStateSums if dot.tiled else StateSums)(dot, hidden, block)


def ordered(weights: Array, packed: PackedPhase, hidden: int, lanes: int) -> Array:
    """Weights [directions, gates·hidden, …] in the order of a phase's panels, padded with zeros."""
    count = packed.panels(hidden, lanes) * packed.vectors * lanes
    blocks = weights[:, : weights.shape[1] // hidden * hidden].reshape(len(weights), -1, hidden, weights.shape[-1])
    result = np.zeros((len(weights), len(packed.phase.gates), count, weights.shape[-1]), np.float32)
    result[:, :, :hidden] = blocks[:, list(packed.phase.gates)]
    return (
        result.reshape(*result.shape[:2], -1, lanes, result.shape[-1])
        .swapaxes(1, 2)
        .reshape(len(weights), -1, weights.shape[-1])
    )

"""Recurrent networks in bf16: where that pays, and the product of all inputs."""

from __future__ import annotations

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.kernels.bf16_recurrent import DotRecurrence, TileRecurrence
from irload.plan.backends.llvm.kernels.bf16_selection import bf16_product, tile_width
from irload.plan.backends.llvm.kernels.block_product import Chunks
from irload.plan.backends.llvm.kernels.recurrent import Recurrence
from irload.plan.backends.llvm.kernels.sharing import shared
from irload.plan.backends.llvm.kernels.to_bf16 import Strided, ToBf16
from irload.plan.backends.llvm.pack import tile_panels
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.spatial import Spatial
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.expression import Expression
from irload.plan.ir.steps import Recurrent

LEAST_WIDTH = 64
"""Elements of the state, or of an input, from which bf16 is faster: LSTM(64 → 64) takes 0.6 of f32, (32 → 32) 1.2."""
LEAST_PRODUCTS = 1 << 18
"""Multiply-adds from which it is: one step of LSTM(128 → 128), which are half as many, takes 1.1."""


def bf16_kind(step: Recurrent, target: Target) -> type[Recurrence]:
    """The kernel of the recurrence, that of f32 where bf16 would not be faster."""
    batch, directions, length, hidden = step.outputs[0].shape
    depth, gates = step.inputs[0].shape[-1], step.inputs[-2].shape[1]
    products = batch * directions * length * gates * (depth + hidden)
    if max(depth, hidden) < LEAST_WIDTH or products < LEAST_PRODUCTS:
        return Recurrence
    # one sample, too: 100 steps of LSTM(256 → 256) take 0.53 ms by tiles, 0.66 by dot products (Sapphire Rapids)
    return TileRecurrence if target.tiles else DotRecurrence


def pack_inputs(weights: Array) -> Array:
    """Weights [directions, width, depth] of the inputs as `bf16_inputs` takes them."""
    return tile_panels(weights[:, :, None], tile_width(weights.shape[1]))


def bf16_inputs(
    x: Array, w: Array, gates: Temporary, bias: Array, epilogue: Expression, selector: Selector
) -> list[Launch]:
    """gates[direction, sample, time] = x[sample, time] · w[direction] + bias[direction], of f32.

    `x` [batch, length, depth] and `bias` [directions, width, 1] are f32; `w` is what `pack_inputs` makes.
    """
    batch, length, depth = x.shape
    directions, width = bias.shape[:2]
    row = width * 4
    copy = ToBf16((), depth, x.strides[2], (Strided(batch, x.strides[0]),), (Spatial(length, x.strides[1], length),))
    chunk, sample, _, time = copy.strides
    axes = [
        Axis(directions, (w.strides[0], 0, batch * length * row, row)),
        Axis(batch, (0, sample, length * row, 0)),
        Axis(length, (0, time, row, 0)),
    ]
    chunks, lie = Chunks.copied(depth, chunk), [(4, F32), (4, F32)]
    product = bf16_product(epilogue, selector.target, axes, chunks, width, (0,), tile_width(width), lie)
    product = shared(product, selector.threads, copy.nbytes, w.nbytes)
    place = selector.temporary(copy.nbytes)
    return [selector.launch(copy, [x, place]), selector.launch(product, [place, w, gates, bias])]

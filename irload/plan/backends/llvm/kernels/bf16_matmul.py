"""Matmuls in bf16. Constant weights are packed once, others before each product."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.elements import element_of
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.kernels.bf16_selection import bf16_product, channels_of, reads_in_place, tile_width
from irload.plan.backends.llvm.kernels.block_product import Chunks
from irload.plan.backends.llvm.kernels.pack_tiles import PackTiles
from irload.plan.backends.llvm.kernels.sharing import shared
from irload.plan.backends.llvm.kernels.to_bf16 import Strided, ToBf16
from irload.plan.backends.llvm.pack import tile_panels
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.spatial import Spatial
from irload.plan.backends.llvm.tiles import DEPTH, ROWS
from irload.plan.ir.steps import MatMul


def bf16_matmul(step: MatMul, selector: Selector) -> list[Launch]:
    """A matmul with leading axes that broadcast, in bf16."""
    a, out = selector.stored(step.inputs[0]), selector.stored(step.output)
    operands = [np.broadcast_to(selector.stored(v), out.shape) for v in step.operands]
    a = a.swapaxes(-1, -2) if step.transpose_a else a
    b = step.inputs[1]
    *batch, m, n = out.shape
    length = a.shape[-1]
    width = tile_width(n)
    matrix = -(-n // (width * ROWS)) * width * -(-length // DEPTH) * 1024
    lead = (*(1,) * (len(batch) - len(b.shape) + 2), *b.shape[:-2])
    spread = [0 if size == 1 else prod(lead[k + 1 :]) * matrix for k, size in enumerate(lead)]
    a = np.broadcast_to(a, (*batch, m, length))
    order = sorted(range(len(batch)), key=lambda k: spread[k] == 0)
    own = sum(stride != 0 for stride in spread)
    tensors = [out, *operands]
    launches: list[Launch] = []
    data: Array | Temporary = a
    in_place = Chunks.in_place(length, tiled=selector.target.tiles)
    if reads_in_place(a, -1, length, selector.target) and (b.is_constant or not in_place.overlap):
        chunks, row, nbytes = in_place, a.strides[-2], a.nbytes
        lies = [a.strides[k] for k in order]
    else:
        held = [Strided(batch[k] if a.strides[k] else 1, a.strides[k]) for k in order]
        rows = Spatial(m, a.strides[-2], m)
        copy = ToBf16(tuple(held[:own]), length, a.strides[-1], tuple(held[own:]), (rows,), element_of(a))
        chunks, row, nbytes = Chunks.copied(length, copy.strides[own]), copy.strides[-1], copy.nbytes
        lies = [*copy.strides[:own], *copy.strides[own + 1 : -2]]
        data, launches = selector.copied(step.inputs[0], a, copy, nbytes)
    axes = [
        Axis(batch[k], (spread[k], lies[at] if a.strides[k] else 0, *(t.strides[k] for t in tensors)))
        for at, k in enumerate(order)
    ]
    axes.append(Axis(m, (0, row, *(t.strides[-2] for t in tensors))))
    made = bf16_product(step.epilogue, selector.target, axes, chunks, n, (0,), width, channels_of(tensors, -1))
    made = shared(made, selector.threads, nbytes, matrix * prod(lead))
    packed: Array | Temporary
    if b.is_constant:

        def pack(weights: Array) -> Array:
            moved = weights if step.transpose_b else weights.swapaxes(-1, -2)
            return tile_panels(moved.reshape(-1, n, 1, length), width, overlap=chunks.overlap)

        packed = selector.packed(b, ("tile matmul", step.transpose_b, width, chunks.overlap), pack)
    else:
        weights = selector.array(b)
        weights = weights.swapaxes(-1, -2) if step.transpose_b else weights
        steps = (weights.strides[-2], weights.strides[-1])
        packing = PackTiles(weights.shape[:-2], weights.strides[:-2], (length, n), steps, width)
        packed = selector.temporary(packing.nbytes)
        launches.append(selector.launch(packing, [weights, packed]))
    return [*launches, selector.launch(made, [data, packed, out, *operands])]

"""Matmuls as products. Constant weights are packed once, others before each product."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, merged
from irload.plan.backends.llvm.elements import F32, element_of
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.access import Access
from irload.plan.backends.llvm.kernels.packing import PackPanels
from irload.plan.backends.llvm.kernels.parts import in_parts
from irload.plan.backends.llvm.kernels.product import Product
from irload.plan.backends.llvm.kernels.sharing import shared
from irload.plan.backends.llvm.kernels.weight_panels import weight_panels
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tile import Level, tile_shape
from irload.plan.ir.steps import MatMul

PANEL = 2
"""Vectors of a panel: the same for any number of rows, so that weights are packed once for all shapes."""


def select_matmul(step: MatMul, selector: Selector) -> list[Launch]:
    """A matmul with leading axes that broadcast."""
    if selector.bf16:
        from irload.plan.backends.llvm.kernels.bf16_matmul import bf16_matmul  # with kernels that f32 needs not
        from irload.plan.backends.llvm.kernels.bf16_selection import pays_in_bf16

        if pays_in_bf16(step, selector.target):
            return bf16_matmul(step, selector)
    a, out = selector.array(step.inputs[0]), selector.stored(step.output)
    operands = [selector.stored(v) for v in step.operands]
    lanes = selector.target.lanes
    *batch, m, n = out.shape
    a = a.swapaxes(-1, -2) if step.transpose_a else a
    length = a.shape[-1]
    panel = min(PANEL, -(-n // lanes))
    matrix = -(-n // (panel * lanes)) * panel * lanes * length * 4
    b = step.inputs[1]
    own = (*(1,) * (len(batch) - len(b.shape) + 2), *b.shape[:-2])
    spread = tuple(0 if size == 1 else prod(own[k + 1 :]) * matrix for k, size in enumerate(own))
    a = np.broadcast_to(a, (*batch, m, length))
    tensors = [a, out, *(np.broadcast_to(t, out.shape) for t in operands)]
    axes = [Axis(size, (spread[k], *(t.strides[k] for t in tensors))) for k, size in enumerate(batch)]
    axes.append(Axis(m, (0, *(t.strides[-2] for t in tensors)), fixed=any(spread)))
    kept = merged(axes) or [Axis(1, (0,) * (1 + len(tensors)))]
    columns = kept[-1].size
    rows, vectors = tile_shape(selector.target, columns, n, PANEL, kept[-1].strides[1])

    def access(k: int, tensor: Array | None) -> Access:
        outer = tuple(axis.strides[1 + k] for axis in kept[:-1])
        channel, element = (0, F32) if tensor is None else (tensor.strides[-1], element_of(tensor))
        return Access(outer, kept[-1].strides[1 + k], channel, 0, element)

    product = Product(
        lanes,
        tuple(axis.size for axis in kept[:-1]),
        columns,
        n,
        (Level(length, a.strides[-1]),),
        access(0, None),
        access(1, out),
        tuple(access(2 + k, t) for k, t in enumerate(tensors[2:])),
        step.epilogue,
        rows,
        vectors,
        panel,
        tuple(axis.strides[0] for axis in kept[:-1]),
        cached=selector.target.cached,
    )
    product = shared(in_parts(product), selector.threads, a.nbytes, matrix * prod(own))
    if b.is_constant:

        def pack(weights: Array) -> Array:
            moved = weights if step.transpose_b else weights.swapaxes(-1, -2)
            return weight_panels(moved.reshape(-1, n, length), selector.target, panel, selector.threads)

        packed = selector.packed(b, ("matmul", step.transpose_b, lanes, panel), pack, stored=True)
        return [selector.launch(product, [a, packed, out, *operands])]
    weights = selector.array(b)
    weights = weights.swapaxes(-1, -2) if step.transpose_b else weights
    place = selector.temporary(matrix * prod(own))
    packing = PackPanels(
        lanes, weights.shape[:-2], weights.strides[:-2], (length, n), (weights.strides[-2], weights.strides[-1]), panel
    )
    return [
        selector.launch(packing, [weights, place]),
        selector.launch(product, [a, place, out, *operands]),
    ]

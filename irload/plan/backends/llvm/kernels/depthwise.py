"""Depthwise convolutions of maps with the channels innermost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.builder import AnyInt, Function, Vec
from irload.plan.backends.llvm.elements import elements_of, is_contiguous
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.sliding_windows import SlidingWindows, share_of, tile_of
from irload.plan.backends.llvm.kernels.windowed import WindowedKernel
from irload.plan.backends.llvm.kernels.windows import edges, five, three_axes
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tuning import WIDEST
from irload.plan.backends.llvm.weight_memory import aligned_f32
from irload.plan.ir.expression import Expression
from irload.record import record


@record()
class Depthwise(SlidingWindows):
    """y[n,c,…] = epilogue(Σ x[n,c,…] · w[tap,c], operands). Pointers: x, y, the operands, w."""

    epilogue: Expression

    @property
    def has_table(self) -> bool:
        return True

    def neutral(self, f: Function) -> Vec:
        return f.zero()

    def combined(self, f: Function, total: Vec, element: Vec, factor: Vec | None) -> Vec:
        assert factor is not None
        return f.fma(element, factor, total)

    def result(self, f: Function, values: list[Vec], elements: AnyInt) -> Vec:
        return evaluate(f, self.epilogue, values)[0]


def fits_depthwise(conv: WindowedKernel) -> bool:
    """True for one channel a group on maps with the channels innermost, and windows that are not too wide."""
    return is_contiguous(conv.data, 1) and is_depthwise(conv.shape, conv.windows[-1])


def is_depthwise(weights: Sequence[int], width: WindowAxis) -> bool:
    """True for weights of one channel a group, and windows along rows that are not too wide."""
    return tuple(weights[1:3]) == (1, 1) and max(width.kernel, edges(width)) <= WIDEST


def select_depthwise(conv: WindowedKernel, selector: Selector) -> Launch:
    """The kernel of a convolution that fits."""
    data, out = conv.data, conv.out
    batch, channels = data.shape[:2]
    axes, lanes = three_axes(conv.windows), selector.target.lanes
    vectors, columns = tile_of(selector.target, channels, axes[2], unrolled=True)
    rows = batch * axes[0].count * axes[1].count
    tensors = [data, out, *(np.broadcast_to(a, out.shape) for a in conv.operands)]
    kernel = Depthwise(
        lanes,
        batch,
        channels,
        axes,
        tuple(five(a.strides) for a in tensors),
        elements_of(tensors),
        share_of(selector.target, selector.threads, channels, rows, vectors),
        vectors,
        columns,
        unrolled=True,
        epilogue=conv.epilogue,
    )

    def pack(weights: Array) -> Array:
        packed = aligned_f32((-(-channels // lanes), kernel.taps, lanes))
        padded = np.zeros((len(packed) * lanes, kernel.taps), np.float32)
        padded[:channels] = weights.reshape(channels, kernel.taps)
        packed[...] = padded.reshape(-1, lanes, kernel.taps).swapaxes(1, 2)
        return packed

    return selector.launch(kernel, [*tensors, conv.packed(selector, ("depthwise", lanes), pack)])

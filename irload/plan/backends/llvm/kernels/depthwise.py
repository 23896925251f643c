"""Convolutions of channels-last maps in small groups, with vectors over channels (`SlidingWindows`).

A group of one channel is a depthwise convolution. In larger groups, each lane sums the products of all channels of its
group, which are broadcast to the lanes of the group in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.builder import AnyInt, Function, Vec
from irload.plan.backends.llvm.elements import is_contiguous
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.computed_weights import packed_by_lane
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.sliding_windows import SlidingWindows, WindowFormula
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.weight_memory import aligned_copy
from irload.plan.ir.expression import Expression
from irload.record import record


@record()
class Depthwise(WindowFormula):
    """y[n,c,…] = epilogue(Σ (x[n,k,…] − zero point) · w[tap,k,c], operands). The table is w; k: the `group` of c."""

    epilogue: Expression
    group: int
    zero_point: int = 0

    name: ClassVar[str] = "Depthwise"

    @property
    def factors(self) -> int:
        return self.group

    def loaded(self, element: Vec) -> list[Vec]:
        f, group = element.function, self.group
        element = element - self.zero_point if self.zero_point else element
        if group == 1:
            return [element]
        firsts = [lane // group * group for lane in range(element.lanes)]
        return [f.shuffle(element, element, [first + k for first in firsts]) for k in range(group)]

    def neutral(self, f: Function) -> Vec:
        return f.zero()

    def combined(self, f: Function, total: Vec, element: Vec, factor: Vec | None) -> Vec:
        assert factor is not None
        return f.fma(element, factor, total)

    def result(self, f: Function, values: list[Vec], elements: Callable[[], AnyInt], taps: int) -> Vec:
        return evaluate(self.epilogue, values)[0]


def largest_group(target: Target, *, bf16: bool) -> int:
    """The most channels per group for which vectors over all channels are faster than a contraction.

    A contraction fills at most half of the lanes with the channels of one group: 3 × 3 taps of groups of 2, 4 and 8
    of 128 channels on 56 × 56 take 0.07, 0.13 and 0.32 ms instead of 0.91, 0.66 and 0.55 (Zen 5). With AMX, products in
    bf16 join groups.
    """
    return 1 if bf16 and target.tiles else target.lanes // 2


def fits_depthwise(conv: ConvProblem, most: int = 1) -> bool:
    """True for groups of at most `most` channels on channels-last maps."""
    return is_contiguous(conv.data, 1) and is_depthwise(conv.shape, most)


def is_depthwise(weights: Sequence[int], most: int = 1) -> bool:
    """True for weights of at most `most` channels per group, a power of 2."""
    outputs, inputs = weights[1:3]
    return outputs == inputs <= most and inputs & (inputs - 1) == 0


def select_depthwise(conv: ConvProblem, selector: Selector, zero_point: int = 0) -> list[Launch]:
    """The kernels of a convolution that `fits_depthwise`."""
    tensors = [conv.data, *conv.tensors]
    group = conv.shape[1]
    kernel = SlidingWindows.of(Depthwise(conv.epilogue, group, zero_point), conv.windows, tensors, selector)
    lanes, channels, taps = kernel.lanes, kernel.channels, kernel.taps

    def pack(weights: Array) -> Array:
        padded = np.pad(weights.reshape(channels, group, taps), ((0, -channels % lanes), (0, 0), (0, 0)))
        return aligned_copy(padded.reshape(-1, lanes, group, taps).transpose(0, 3, 2, 1))

    if conv.weights.is_constant:
        return [selector.launch(kernel, [*tensors, conv.packed(selector, ("depthwise", lanes), pack)])]
    table, packs = packed_by_lane(conv.computed(selector), lanes, selector)
    return [*packs, selector.launch(kernel, [*tensors, table])]

"""Depthwise convolutions of channels-last maps, with vectors over channels (`SlidingWindows`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from irload.core.tensor import Array
from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.builder import AnyInt, Function, Vec
from irload.plan.backends.llvm.elements import is_contiguous
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.sliding_windows import SlidingWindows, WindowFormula, is_narrow
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.weight_memory import aligned_copy
from irload.plan.ir.expression import Expression
from irload.record import record


@record()
class Depthwise(WindowFormula):
    """y[n,c,…] = epilogue(Σ (x[n,c,…] − zero point) · w[tap,c], operands). The table is w."""

    epilogue: Expression
    zero_point: int = 0

    name: ClassVar[str] = "Depthwise"
    has_table: ClassVar[bool] = True

    def loaded(self, element: Vec) -> Vec:
        return element - self.zero_point if self.zero_point else element

    def neutral(self, f: Function) -> Vec:
        return f.zero()

    def combined(self, f: Function, total: Vec, element: Vec, factor: Vec | None) -> Vec:
        assert factor is not None
        return f.fma(element, factor, total)

    def result(self, f: Function, values: list[Vec], elements: Callable[[], AnyInt], taps: int) -> Vec:
        return evaluate(self.epilogue, values)[0]


def fits_depthwise(conv: ConvProblem) -> bool:
    """True for one channel per group on channels-last maps, and windows that are not too wide."""
    return is_contiguous(conv.data, 1) and is_depthwise(conv.shape, conv.windows[-1])


def is_depthwise(weights: Sequence[int], width: WindowAxis) -> bool:
    """True for weights of one channel per group, and windows that are not too wide along rows."""
    return tuple(weights[1:3]) == (1, 1) and is_narrow(width)


def select_depthwise(conv: ConvProblem, selector: Selector, zero_point: int = 0) -> Launch:
    """The kernel of a convolution that `fits_depthwise`."""
    tensors = [conv.data, *conv.tensors]
    kernel = SlidingWindows.of(Depthwise(conv.epilogue, zero_point), conv.windows, tensors, selector)
    lanes, channels, taps = kernel.lanes, kernel.channels, kernel.taps

    def pack(weights: Array) -> Array:
        padded = np.pad(weights.reshape(channels, taps), ((0, -channels % lanes), (0, 0)))
        return aligned_copy(padded.reshape(-1, lanes, taps).swapaxes(1, 2))

    return selector.launch(kernel, [*tensors, conv.packed(selector, ("depthwise", lanes), pack)])

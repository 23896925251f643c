"""What kernels that pool windows have in common: what they read and write, and how elements are combined."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.windows import WindowAxis
from irload.record import record

LOWEST = float(np.finfo(np.float32).min)
"""The maximum of nothing. NaN never wins, as in the NumPy back end."""

UNROLLED = 8
"""Taps along a row that are written one after the other; more of them are a loop."""


@record()
class WindowPooling(Kernel):
    """Maxima or means over windows of maps [N,C,D,H,W]. Pointers: x, y. Strides count bytes.

    `full`: a mean is divided by all taps of its window, not by those in the data.
    """

    lanes: int
    kind: str
    full: bool
    batch: int
    channels: int
    axes: tuple[WindowAxis, WindowAxis, WindowAxis]
    source: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def code(self) -> Self:
        return replace(self, batch=0)

    def neutral(self, f: Function) -> Value:
        """What a maximum or sum starts with."""
        return f.zero() if self.kind == "mean" else f.number(LOWEST)

    def combined(self, f: Function, total: Value, x: Value) -> Value:
        """A maximum or sum with one more element."""
        if self.kind == "mean":
            return f.arithmetic("fadd", total, x)
        return f.select(f.compare_floats("ogt", x, total), x, total)

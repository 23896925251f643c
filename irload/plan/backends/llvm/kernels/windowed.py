"""A convolution as its kernels see it: arrays, the geometry of its windows, and how its weights are picked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernels.windows import WindowAxis, window_axes
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.expression import Expression
from irload.plan.ir.program import Value
from irload.plan.ir.steps import Conv
from irload.record import record


@record()
class Windowed:
    """out = epilogue(convolution of data [N,C,X…] by weights, operands).

    `shape` is that of the weights, [G,O/G,C/G,K…]. Tap k of output o reads position o·stride + k·dilation − begin of an
    axis, and zero where that is not within `sizes`. `pick` takes the weights from the constant, `name` is its key.
    """

    data: Array
    out: Array
    operands: list[Array]
    epilogue: Expression
    weights: Value
    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    pick: Callable[[Array], Array] = lambda weights: weights
    name: Hashable = None

    @staticmethod
    def of(step: Conv, selector: Selector) -> Windowed:
        """A convolution of a program."""
        data, weights, *operands = step.inputs
        return Windowed(
            selector.stored(data),
            selector.stored(step.output),
            [selector.stored(v) for v in operands],
            step.epilogue,
            weights,
            weights.shape,
            data.shape[2:],
            step.strides,
            step.dilations,
            step.pads_begin,
        )

    @property
    def kernel(self) -> tuple[int, ...]:
        """The taps along each spatial axis."""
        return self.shape[3:]

    def packed(
        self, selector: Selector, how: Sequence[Hashable], pack: Callable[[Array], Array], *, stored: bool = False
    ) -> Array:
        """The weights as `pack` makes them of [G,O/G,C/G,K…]; `stored` as for the selector."""
        key = (*how, self.name)
        return selector.packed(self.weights, key, lambda constant: pack(self.pick(constant)), stored=stored)

    def axes(self) -> tuple[WindowAxis, WindowAxis, WindowAxis]:
        """The windows along each of three spatial axes."""
        return window_axes(self.sizes, self.out.shape[2:], self.kernel, self.strides, self.dilations, self.begin)

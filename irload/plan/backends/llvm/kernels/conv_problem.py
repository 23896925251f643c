"""The record from which all kernels of convolutions are selected: arrays, windows, and the weights of the taps."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from irload.core.tensor import Array
from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.sized_arrays import spread
from irload.plan.ir.expression import Expression
from irload.plan.ir.program import Value
from irload.plan.ir.steps import ConvStep
from irload.record import record


@record()
class ConvProblem:
    """out = epilogue(convolution of data [N,C,X…] by weights, operands).

    `shape`: of the weights, [G,O/G,C/G,K…]. `windows`: along each spatial axis. `pick` returns these weights, a view of
    the weights of the step, and `name` identifies it in the key of packed weights.
    """

    data: Array
    out: Array
    operands: list[Array]
    epilogue: Expression
    weights: Value
    shape: tuple[int, ...]
    windows: tuple[WindowAxis, ...]
    pick: Callable[[Array], Array] = lambda weights: weights
    name: Hashable = None

    @staticmethod
    def of(step: ConvStep, selector: Selector) -> ConvProblem:
        """A convolution of a program."""
        data, weights, *operands = step.inputs
        arrays = selector.stored(data), selector.stored(step.output), [selector.stored(v) for v in operands]
        return ConvProblem(*arrays, step.epilogue, weights, weights.shape, step.windows)

    @property
    def tensors(self) -> list[Array]:
        """The result and the operands of the epilogue, broadcast to the shape of the result."""
        return [self.out, *(spread(operand, self.out.shape) for operand in self.operands)]

    def computed(self, selector: Selector) -> Array:
        """The weights [G,O/G,C/G,K…], if they are computed in each inference."""
        return self.pick(selector.array(self.weights))

    def packed(
        self, selector: Selector, how: Sequence[Hashable], pack: Callable[[Array], Array], *, stored: bool = False
    ) -> Array:
        """Constant weights [G,O/G,C/G,K…] packed by `pack`, cached under `how`. `stored`: see `Selector.packed`."""
        key = (*how, self.name)
        return selector.packed(self.weights, key, lambda constant: pack(self.pick(constant)), stored=stored)

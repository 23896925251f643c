"""Kernels with fields that are not polynomials of the sizes, such as the shape of a tile.

An arbitrary function of the sizes returns the kernel. A traced selection stores the function and calls it for each
shape; its results are cached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from irload.core.size import hint
from irload.plan.backends.llvm.builder import Function
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.ir.building import builder
from irload.record import record

Chosen = TypeVar("Chosen", bound=Kernel)

SHAPES = 64
"""Maximum number of shapes for which a kernel is cached."""


@record(eq=False)
class ChosenKernel(Kernel):
    """A kernel that is chosen for each shape.

    `choose`: a function from `arguments`, with numbers for symbolic sizes, to the kernel. `here`: the kernel at the
    traced shape.
    """

    choose: Callable[..., Kernel]
    arguments: tuple[Any, ...]
    here: Kernel

    def builder(
        self, index: Callable[[Any], int], described: Callable[[Kernel], Sequence[int]]
    ) -> Callable[[Sequence[int]], tuple[Kernel, Sequence[int]]]:
        """A function from the values of sizes to the kernel and its description.

        `index`: returns the position of a size among the values. `described`: returns the description of a kernel.
        """
        positions: list[int] = []

        def argument(size: Any) -> int:
            positions.append(index(size))
            return len(positions) - 1

        build = builder(self.arguments, argument) or (lambda values: self.arguments)

        @lru_cache(SHAPES)
        def build_kernel(*numbers: int) -> tuple[Kernel, Sequence[int]]:
            kernel = self.choose(*build(numbers))
            return kernel, described(kernel)

        return lambda values: build_kernel(*[values[k] for k in positions])

    @property
    def count(self) -> int:
        return self.here.count

    @property
    def cycles(self) -> float:
        return self.here.cycles

    def write(self, f: Function) -> None:
        self.here.write(f)


def chosen(choose: Callable[..., Chosen], *arguments: Any) -> tuple[ChosenKernel, Chosen]:
    """The kernel that `choose` returns for each shape, and the kernel at the traced shape.

    `arguments`: of `choose`; they contain symbolic sizes.
    """
    here = choose(*with_numbers(arguments))
    return ChosenKernel(choose, arguments, here), here


def with_numbers(item: Any, number: Callable[[Any], int] = hint) -> Any:
    """A copy of an object of a plan in which `number(size)` replaces each symbolic size.

    By default, this is the value of the size at the traced shape.
    """
    numbers: list[int] = []

    def index(size: Any) -> int:
        numbers.append(number(size))
        return len(numbers) - 1

    build = builder(item, index)
    return item if build is None else build(numbers)

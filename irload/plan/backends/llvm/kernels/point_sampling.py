"""What kernels of GridSample have in common: the walk along points, a vector of them at a time."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from math import prod
from typing import Self

from irload.plan.backends.llvm.axes import Axis, offsets, unbounded
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.grid_points import Sampler, Tap
from irload.plan.backends.llvm.spans import moved
from irload.record import record


@record()
class PointSampling(Kernel):
    """y[n,c,p] = Σ x[n,c,rows,columns] · weights at the point p of grid [n,p,2]. Pointers: y, grid, x.

    A unit is as many points as a vector has lanes. Strides count bytes: of y, grid and x along `outer`, of y and grid
    along `points`, of y and x along `channels`.
    """

    lanes: int
    sampler: Sampler
    outer: tuple[Axis, ...]
    points: Axis
    channels: Axis

    @property
    def code(self) -> Self:
        return replace(self, outer=unbounded(self.outer))

    @property
    def count(self) -> int:
        return prod(axis.size for axis in self.outer) * self._vectors

    @property
    def _vectors(self) -> int:
        """Vectors of a line of points."""
        return -(-self.points.size // self.lanes)

    def write(self, function: Function) -> None:
        f = function
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(3)]
        rest = self.points.size % self.lanes

        def unit(index: Value, _: list[Value]) -> None:
            line, vector = f.divmod(index, self._vectors)
            *places, image = moved(f, pointers, offsets(f, line, self.outer, 3))
            first = f.multiply(vector, self.lanes)
            y, grid = moved(f, places, [f.multiply(first, s) for s in self.points.strides])

            def points(count: int | None) -> None:
                self._sample(f, y, image, self.sampler.find(f, grid, count), first, count)

            if rest and self._vectors > 1:
                f.when(f.compare("eq", vector, self._vectors - 1), lambda: points(rest), lambda: points(None))
            else:
                points(rest or None)

        f.loop(f["begin"], f["end"], 1, unit)

    @abstractmethod
    def _sample(
        self, f: Function, y: Value, image: Value, taps: tuple[list[Tap], list[Tap]], first: Int, count: int | None
    ) -> None:
        """Write all channels of a vector of points, `count` of them, by default all: from point `first` of a line on.

        `y` and `image`: where these points lie in y, and their line in x. `taps`: rows and columns of the points.
        """

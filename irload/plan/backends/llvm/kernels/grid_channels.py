"""GridSample of images whose channels lie side by side: places and weights of some points first, then point by point.

Vectors run along channels. For 32 of them, as attention over maps has, gathers take three times as long.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

from irload.plan.backends.llvm.axes import Axis, offsets, unbounded
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.grid_points import Sampler, Tap, weighted
from irload.plan.backends.llvm.kernels.loops import each_vector
from irload.plan.backends.llvm.operands import write
from irload.plan.backends.llvm.shuffles import transposed
from irload.plan.backends.llvm.spans import moved
from irload.plan.backends.llvm.vectors import Bits, Vector
from irload.record import record


@record()
class ChannelSampling(Kernel):
    """y[n,c,p] = Σ x[n,c,rows,columns] · weights at the point p of grid [n,p,2]. Pointers: y, grid, x.

    A unit is as many points as a vector has lanes. Strides count bytes: of y, grid and x along `outer`, of y and grid
    along `points`, of y along its `channels`, whose neighbours are 4 bytes apart in x.
    """

    lanes: int
    sampler: Sampler
    outer: tuple[Axis, ...]
    points: Axis
    channels: Axis

    @property
    def code(self) -> ChannelSampling:
        return replace(self, outer=unbounded(self.outer))

    @property
    def count(self) -> int:
        return prod(axis.size for axis in self.outer) * self._blocks

    @property
    def cycles(self) -> float:
        vectors = self.lanes * -(-self.channels.size // self.lanes)
        return self.count * (40 + 10 * self.sampler.taps + vectors * (4 + 2 * self.sampler.taps**2))

    @property
    def _blocks(self) -> int:
        return -(-self.points.size // self.lanes)

    @property
    def _slots(self) -> int:
        """Vectors that are kept: for each pixel its places and which are inside, and weights of rows and columns."""
        return 2 * self.sampler.taps**2 + 2 * self.sampler.taps

    def _slot(self, index: int) -> int:
        return 8 * self.lanes * index

    def write(self, function: Function) -> None:
        f = function
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(3)]
        rest = self.points.size % self.lanes
        kept, square = f.local(self._slot(self._slots)), f.local(4 * self.lanes * self.lanes)

        def unit(index: Value, _: list[Value]) -> None:
            line, block = f.divmod(index, self._blocks)
            *places, image = moved(f, pointers, offsets(f, line, self.outer, 3))
            first = f.multiply(block, self.lanes)
            y, grid = moved(f, places, [f.multiply(first, s) for s in self.points.strides])

            def points(count: int | None) -> None:
                self._keep(f, kept, *self.sampler.find(f, grid, count))
                each_vector(
                    f, self.channels.size, lambda at, n: self._channels(f, (y, image, kept, square), at, n, count)
                )

            if rest and self._blocks > 1:
                f.when(f.compare("eq", block, self._blocks - 1), lambda: points(rest), lambda: points(None))
            else:
                points(rest or None)

        f.loop(f["begin"], f["end"], 1, unit)

    def _keep(self, f: Function, kept: Value, rows: list[Tap], columns: list[Tap]) -> None:
        """Store what the points of a vector read."""
        pixels = self.sampler.taps**2
        for k, (row, column) in enumerate(product(rows, columns)):
            places, inside = self.sampler.pixel(f, row, column)
            f.emit(f"store {places.type} {places}, ptr {f.at(kept, self._slot(k))}, align 64")
            if inside is not None:
                bits = f.value(f.integers, f"sext {f.booleans} {inside} to {f.integers}")
                f.emit(f"store {f.integers} {bits}, ptr {f.at(kept, self._slot(pixels + k))}, align 64")
        for k, tap in enumerate([*rows, *columns], 2 * pixels):
            if tap.weights is not None:
                f.store(tap.weights.value, kept, self._slot(k))

    def _channels(
        self, f: Function, pointers: tuple[Value, ...], first: Int, count: int | None, points: int | None
    ) -> None:
        """One vector of channels of so many points, by way of a square where those of y lie apart."""
        y, image, kept, square = pointers
        apart = self.channels.strides[0]
        y, image = moved(f, [y, image], [f.multiply(first, s) for s in (apart, 4)])

        def point(k: Value, _: list[Value]) -> None:
            found = self._point(f, image, kept, k, count).value
            if apart == 4:
                f.store(found, y, f.multiply(k, self.points.strides[0]), count)
            else:
                f.store(found, square, f.multiply(k, 4 * self.lanes))

        f.loop(0, points or self.lanes, 1, point)
        if apart == 4:
            return
        made = range(points or self.lanes)
        rows = [f.load(square, 4 * self.lanes * k) if k in made else f.zero() for k in range(self.lanes)]
        for k, channel in enumerate(transposed(f, rows)[:count]):
            write(f, channel, y, k * apart, self.points.strides[0], points)

    def _point(self, f: Function, image: Value, kept: Value, k: Value, count: int | None) -> Vector:
        """A vector of channels of point k."""
        taps, pixels = self.sampler.taps, self.sampler.taps**2
        numbers = f.at(kept, f.multiply(k, 4))

        def pixel(n: int) -> Vector:
            if self.sampler.integer == "i32":
                place = f.load_short_int(numbers, self._slot(n))
            else:
                place = f.load_int(f.at(kept, f.multiply(k, 8)), self._slot(n))
            found = Vector(f, f.load(f.at(image, f.multiply(place, 4)), 0, count))
            if self.sampler.padding != "zeros":
                return found
            inside = Vector(f, f.broadcast(numbers, self._slot(pixels + n)))
            bits = f.value(f.integers, f"and {f.integers} {found.bits().value}, {inside.bits().value}")
            return Bits(f, bits).floats()

        def weights(first: int) -> list[Vector | None]:
            if self.sampler.mode == "nearest":
                return [None]
            return [Vector(f, f.broadcast(numbers, self._slot(2 * pixels + first + n))) for n in range(taps)]

        down, across = weights(0), weights(taps)
        lines = [weighted(across, [pixel(row * taps + column) for column in range(taps)]) for row in range(taps)]
        return weighted(down, lines)

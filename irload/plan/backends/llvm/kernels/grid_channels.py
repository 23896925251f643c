"""GridSample of images whose channels lie side by side: places and weights of some points first, then point by point.

Vectors run along channels. For 32 of them, as attention over maps has, gathers take three times as long.
"""

from __future__ import annotations

from itertools import product

from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernels.grid_points import Tap, weighted
from irload.plan.backends.llvm.kernels.loops import each_vector
from irload.plan.backends.llvm.kernels.point_sampling import PointSampling
from irload.plan.backends.llvm.operands import write
from irload.plan.backends.llvm.shuffles import transposed
from irload.plan.backends.llvm.spans import moved
from irload.plan.backends.llvm.vectors import Bits, Vector
from irload.record import record


@record()
class ChannelSampling(PointSampling):
    """Vectors of channels, between which are 4 bytes in x."""

    @property
    def cycles(self) -> float:
        vectors = self.lanes * -(-self.channels.size // self.lanes)
        return self.count * (40 + 10 * self.sampler.taps + vectors * (4 + 2 * self.sampler.taps**2))

    @property
    def scratch(self) -> int:
        return self._slot(self._slots) + 4 * self.lanes * self.lanes

    @property
    def _slots(self) -> int:
        """Vectors that are kept: for each pixel its places and which are inside, and weights of rows and columns."""
        return 2 * self.sampler.taps**2 + 2 * self.sampler.taps

    def _slot(self, index: int) -> int:
        return 8 * self.lanes * index

    def _sample(
        self, f: Function, y: Value, image: Value, taps: tuple[list[Tap], list[Tap]], first: Int, count: int | None
    ) -> None:
        kept, square = f["scratch"], f.at(f["scratch"], self._slot(self._slots))
        self._keep(f, kept, *taps)
        each_vector(f, self.channels.size, lambda at, n: self._channels(f, (y, image, kept, square), at, n, count))

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

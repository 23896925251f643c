"""The points of a GridSample: which pixels each of them takes, and their weights.

Every operation is that of the operation's own `compute`, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from irload.ops.image.grid_sample import FAR
from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.operands import read
from irload.plan.backends.llvm.shuffles import unzipped
from irload.plan.backends.llvm.vectors import Vector
from irload.record import record

LONGEST_SIDE = 1 << 22
"""Pixels of a side up to which f32 holds twice their number, by which coordinates are reflected."""
_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}


@record()
class Tap:
    """For a vector of points, a pixel each along one axis: elements from pixel 0, whether inside, and weights.

    None: all of them are inside, or there is but one pixel, without a weight.
    """

    places: Value
    inside: Value | None
    weights: Vector | None


@record()
class Side:
    """An axis of the image: its pixels, and the bytes between neighbours."""

    size: int
    stride: int


@record()
class Sampler:
    """How points are sampled. Strides count bytes: between points of the grid, and between x and y of a point.

    `integer`: the type that counts elements of the image; twice as many are gathered at once by 32 bits.
    """

    mode: str
    padding: str
    align_corners: bool
    height: Side
    width: Side
    point: int
    coordinate: int
    integer: str

    @property
    def taps(self) -> int:
        """The pixels along each axis."""
        return _TAPS[self.mode]

    def find(self, f: Function, grid: Value, count: int | None) -> tuple[list[Tap], list[Tap]]:
        """The rows and the columns of `count` points, by default as many as there are lanes.

        Those of lanes beyond `count` are inside, too, so that their pixels may be read.
        """
        if (self.point, self.coordinate) == (8, 4):
            wanted = 2 * (count or f.lanes)
            pairs = [f.load(grid, 4 * k, min(wanted - k, f.lanes)) if k < wanted else f.zero() for k in (0, f.lanes)]
            x, y = unzipped(f, pairs)
        else:
            x, y = (read(f, grid, k * self.coordinate, self.point, count) for k in range(2))
        return self._along(Vector(f, y), self.height), self._along(Vector(f, x), self.width)

    def pixel(self, f: Function, row: Tap, column: Tap) -> tuple[Value, Value | None]:
        """The elements from pixel 0 to those where a row and a column meet, and which are inside, None: all of them."""
        places = self.integers(f, "add", row.places, column.places)
        if row.inside is None or column.inside is None:
            return places, None
        return places, f.value(f.booleans, f"and {f.booleans} {row.inside}, {column.inside}")

    def integers(self, f: Function, operation: str, a: Value, b: Value | int) -> Value:
        """Arithmetic on vectors of places."""
        operand = b if isinstance(b, Value) else f"splat ({self.integer} {b})"
        return f.value(a.type, f"{operation} {a.type} {a}, {operand}")

    def _along(self, at: Vector, side: Side) -> list[Tap]:
        """The pixels around coordinates along one axis."""
        at = (at + 1.0) * (side.size - 1.0) if self.align_corners else (at + 1.0) * float(side.size) - 1.0
        at = at * 0.5
        if self.mode == "nearest":
            return [self._tap(at.unary("rint"), side, None)]
        first = at.unary("floor")
        weights = _linear(at - first) if self.mode == "bilinear" else _cubic(at - first)
        begin = 0 if self.mode == "bilinear" else -1
        return [self._tap(first + float(k), side, weight) for k, weight in enumerate(weights, begin)]

    def _tap(self, at: Vector, side: Side, weights: Vector | None) -> Tap:
        """The pixels at whole coordinates, those outside padded. NaN is beyond the last one."""
        f, last = at.function, float(side.size - 1)
        if self.padding == "reflection":
            at = self._reflected(at, side.size)
        near = at.where(at.compare("olt", last), last).at_least(0.0)
        inside = near.compare("oeq", at) if self.padding == "zeros" else None
        kind = f"<{f.lanes} x {self.integer}>"
        pixels = f.value(kind, f"fptosi {f.vector} {near.value} to {kind}")
        return Tap(self.integers(f, "mul", pixels, side.stride // 4), inside, weights)

    def _reflected(self, at: Vector, size: int) -> Vector:
        """Coordinates in −1…size: the remainder by a period, and its mirror image in the second half.

        A remainder is off by a few periods where the quotient has more than 24 bits, hence the second one.
        """
        period = float(max(2 * (size - 1), 1) if self.align_corners else 2 * size)
        at = at.where(at.compare("olt", FAR), FAR).at_least(-FAR)
        for _ in range(2):
            at = (at * (1 / period)).unary("floor").times_plus(-period, at)
        mirrored = (period if self.align_corners else period - 1.0) - at
        return mirrored.where(at.compare("oge", float(size)), at)


def weighted(weights: Sequence[Vector | None], terms: Sequence[Vector]) -> Vector:
    """The sum of terms, each with its weight."""
    first, *rest = (t if w is None else w * t for w, t in zip(weights, terms, strict=True))
    return reduce(Vector.__add__, rest, first)


def _linear(r: Vector) -> tuple[Vector, ...]:
    return 1.0 - r, r


def _cubic(r: Vector) -> tuple[Vector, ...]:
    """The four weights of cubic convolution with a = −0.75, at distance `r` from the second pixel."""
    a = -0.75

    def near(d: Vector) -> Vector:
        return ((a + 2) * d - (a + 3)) * d * d + 1.0

    def far(d: Vector) -> Vector:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return far(r + 1.0), near(r), near(1.0 - r), far(2.0 - r)

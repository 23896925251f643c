"""The points at which an image is sampled: the pixels around each point, and their weights.

All operations and their order are as in `GridSample.compute`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from irload.ops.image.grid_sample import FAR
from irload.plan.backends.llvm.arguments import Arguments, float_word
from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import SIZES
from irload.plan.backends.llvm.operands import read
from irload.plan.backends.llvm.shuffles import unzipped
from irload.record import record

LONGEST_SIDE = 1 << 22
"""The maximum number of pixels of a side: twice this number, the period of reflections, is exact in f32."""
_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}
_BOUNDS = {"image": (0.0, "oge", "olt"), "border": (-1.0, "ogt", "olt"), "margin": (-1.0, "oge", "ole")}
"""The lower bound, and the comparisons of coordinates with it and with the size, see `SampleSumStep`."""


@record()
class Tap:
    """One pixel along one axis for each point of a vector: its offset, whether it is in the image, and its weight.

    Offsets count elements from pixel 0. `inside` is None if all pixels are in the image; `weights` is None if there is
    only one pixel. For a single point, the offset is an Int, and all lanes have the same weight.
    """

    offsets: Any
    inside: Bool | None
    weights: Vec | None

    def of_each(self, f: Function) -> Callable[[AnyInt], Tap]:
        """Store the tap. The result loads it for the point in a lane."""
        integer, offsets = self.offsets.element, f.stored(self.offsets)
        flags = None if self.inside is None else f.stored(f.number(1.0).where(self.inside, 0.0))
        weights = None if self.weights is None else f.stored(self.weights)

        def of(lane: AnyInt) -> Tap:
            return Tap(
                f.load_int(offsets, lane * SIZES[integer], integer),
                None if flags is None else f.load_scalar(flags, lane * 4).compare("ogt", 0.0),
                None if weights is None else f.broadcast(weights, lane * 4),
            )

        return of


@record(eq=False)
class ImageAxis:
    """An axis of the image. Each field is a number that the code reads, in all lanes of a vector.

    `size`: the number of pixels; `last`: the coordinate of the last pixel; `period`: of reflections; `inverse`: of the
    period; `stride`: the elements between neighbours.
    """

    size: Vec
    last: Vec
    period: Vec
    inverse: Vec
    stride: Vec

    @staticmethod
    def read(arguments: Arguments, integer: str) -> ImageAxis:
        """Read the numbers that `GridSampler.numbers` lists, the stride as `integer`."""
        size, last, period, inverse = arguments.vectors(4)
        stride, f = arguments.integer(), size.function
        elements = f.splat(stride if integer == "i64" else stride.cast("trunc", "i32"))
        return ImageAxis(size, last, period, inverse, elements)


@record()
class GridSampler:
    """The attributes of the samples that are compiled in.

    `units` of the coordinates: "corners" or "edges" for (x, y) in −1…1, which are the centres or the outer edges of the
    outermost pixels; "pixels" for (y, x). `bounds`: see `SampleSumStep`. `pairs`: the coordinates of all points are
    contiguous. `integer`: the type of offsets; gathers with i32 offsets load twice as many elements per instruction as
    gathers with i64.
    """

    mode: str
    padding: str
    units: str
    bounds: str | None
    pairs: bool
    integer: str

    @property
    def taps(self) -> int:
        """The number of pixels along each axis that contribute to a point."""
        return _TAPS[self.mode]

    def numbers(self, size: int, stride: int) -> tuple[int, ...]:
        """The run-time arguments of an axis of the image. `stride`: the bytes between neighbours."""
        period = max(2 * (size - 1), 1) if self.units == "corners" else 2 * size
        return (*map(float_word, (size, size - 1, period, 1 / period)), stride // 4)

    def find(
        self, f: Function, sides: Sequence[ImageAxis], grid: Pointer, strides: Sequence[AnyInt], count: AnyInt | None
    ) -> list[list[Tap]]:
        """The taps along rows and along columns of `count` points, by default one per lane.

        `sides`: height and width of the image. `strides`: bytes between points of the grid, and between x and y of a
        point (y and x in pixels). Lanes from `count` on also have offsets inside the image, so that gathers can read
        them.
        """
        if self.pairs:
            counts = [None if count is None else f.maximum(2 * count - k, 0) for k in (0, f.lanes)]
            points = unzipped(f, [f.load(grid, 4 * k, n) for k, n in zip((0, f.lanes), counts, strict=True)])
        else:
            points = [read(f, grid, k * strides[1], strides[0], count) for k in range(2)]
        rows_first = points if self.units == "pixels" else points[::-1]
        return [self._along(at, side) for at, side in zip(rows_first, sides, strict=True)]

    def _along(self, at: Vec, side: ImageAxis) -> list[Tap]:
        """The pixels around coordinates along one axis."""
        if self.units != "pixels":
            at = (at + 1.0) * side.last if self.units == "corners" else (at + 1.0) * side.size - 1.0
            at = at * 0.5
        if self.mode == "nearest":
            return [self._tap(at.unary("rint"), side, None)]
        valid = None
        if self.bounds is not None:
            low, above, below = _BOUNDS[self.bounds]
            valid = at.compare(above, low) & at.compare(below, side.size)
        if self.bounds == "margin":
            at = at.where(at.compare("olt", side.last), side.last).at_least(0.0)
        first = at.unary("floor")
        if self.mode == "bicubic":
            return [self._tap(first + float(k), side, weight) for k, weight in enumerate(_cubic(at - first), -1)]
        second = at.unary("ceil") if self.bounds == "image" else first + 1.0
        after = at - first
        return [self._tap(first, side, 1.0 - after, valid), self._tap(second, side, after, valid)]

    def _tap(self, at: Vec, side: ImageAxis, weights: Vec | None, valid: Bool | None = None) -> Tap:
        """The pixels at integral coordinates, after padding. NaN is treated as beyond the last pixel.

        `valid`: whether the samples are within the bounds.
        """
        if self.padding == "reflection":
            at = self._reflected(at, side)
        near = at.where(at.compare("olt", side.last), side.last).at_least(0.0)
        inside = near.compare("oeq", at) if self.padding == "zeros" else None
        if valid is not None:
            inside = valid if inside is None else inside & valid
        if self.units == "pixels" and weights is not None and inside is not None:
            weights = weights.where(inside, 0.0)  # NaN if the coordinate is infinite
        return Tap(near.cast("fptosi", self.integer) * side.stride, inside, weights)

    def _reflected(self, at: Vec, side: ImageAxis) -> Vec:
        """Coordinates in −1…size: the remainder by the period, mirrored in the second half.

        It is computed twice: the first remainder is off by a few periods if the quotient has more than 24 bits.
        """
        at = at.where(at.compare("olt", FAR), FAR).at_least(-FAR)
        for _ in range(2):
            at = (at * side.inverse).unary("floor").times_plus(-side.period, at)
        mirrored = (side.period if self.units == "corners" else side.period - 1.0) - at
        return mirrored.where(at.compare("oge", side.size), at)


def interpolated(taps: Sequence[Sequence[Tap]], load: Callable[[Any], Vec]) -> Vec:
    """The weighted sum of the pixels at rows and columns. `load`: loads pixels by their offsets."""
    rows, columns = taps

    def pixel(row: Tap, column: Tap) -> Vec:
        elements = load(row.offsets + column.offsets)
        if row.inside is None or column.inside is None:
            return elements
        return elements.where(row.inside & column.inside, 0.0)

    weights = [tap.weights for tap in columns]
    lines = [_weighted(weights, [pixel(row, column) for column in columns]) for row in rows]
    return _weighted([tap.weights for tap in rows], lines)


def _weighted(weights: Sequence[Vec | None], terms: Sequence[Vec]) -> Vec:
    """The sum of terms, each with its weight."""
    first, *rest = (t if w is None else w * t for w, t in zip(weights, terms, strict=True))
    return reduce(Vec.__add__, rest, first)


def _cubic(r: Vec) -> tuple[Vec, ...]:
    """The four weights of cubic convolution with a = −0.75, at distance `r` from the second pixel."""
    a = -0.75

    def near(d: Vec) -> Vec:
        return ((a + 2) * d - (a + 3)) * d * d + 1.0

    def far(d: Vec) -> Vec:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return far(r + 1.0), near(r), near(1.0 - r), far(2.0 - r)

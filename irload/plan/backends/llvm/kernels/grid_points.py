"""The points of a GridSample: the pixels around each point, and their weights.

All operations and their order are as in `GridSample.compute`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from irload.ops.image.grid_sample import FAR
from irload.plan.backends.llvm.arguments import Arguments, float_word
from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Pointer, Vec
from irload.plan.backends.llvm.operands import read
from irload.plan.backends.llvm.shuffles import unzipped
from irload.record import record

LONGEST_SIDE = 1 << 22
"""The maximum number of pixels of a side: twice this number, the period of reflections, is exact in f32."""
_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}


@record()
class Tap:
    """One pixel along one axis for each point of a vector: its offset, whether it is in the image, and its weight.

    Offsets count elements from pixel 0. `inside` is None if all pixels are in the image; `weights` is None if there is
    only one pixel.
    """

    offsets: Vec
    inside: Bool | None
    weights: Vec | None


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
    def read(f: Function, arguments: Arguments, integer: str) -> ImageAxis:
        """Read the numbers that `GridSampler.numbers` lists, the stride as `integer`."""
        size, last, period, inverse = arguments.vectors(4)
        stride = f.integer(arguments.integer())
        elements = f.splat(stride if integer == "i64" else stride.cast("trunc", "i32"))
        return ImageAxis(size, last, period, inverse, elements)


@record()
class GridSampler:
    """The attributes of a GridSample that are compiled in.

    `pairs`: the coordinates (x, y) of all points are contiguous. `integer`: the type of offsets; gathers with i32
    offsets load twice as many elements per instruction as gathers with i64.
    """

    mode: str
    padding: str
    align_corners: bool
    pairs: bool
    integer: str

    @property
    def taps(self) -> int:
        """The number of pixels along each axis that contribute to a point."""
        return _TAPS[self.mode]

    def numbers(self, size: int, stride: int) -> tuple[int, ...]:
        """The run-time arguments of an axis of the image. `stride`: the bytes between neighbours."""
        period = max(2 * (size - 1), 1) if self.align_corners else 2 * size
        return (*map(float_word, (size, size - 1, period, 1 / period)), stride // 4)

    def find(
        self, f: Function, sides: Sequence[ImageAxis], grid: Pointer, strides: Sequence[AnyInt], count: AnyInt | None
    ) -> list[list[Tap]]:
        """The taps along rows and along columns of `count` points, by default one per lane.

        `sides`: height and width of the image. `strides`: bytes between points of the grid, and between x and y of a
        point. Lanes from `count` on also have offsets inside the image, so that gathers can read them.
        """
        if self.pairs:
            counts = [None if count is None else f.maximum(2 * count - k, 0) for k in (0, f.lanes)]
            x, y = unzipped(f, [f.load(grid, 4 * k, n) for k, n in zip((0, f.lanes), counts, strict=True)])
        else:
            x, y = (read(f, grid, k * strides[1], strides[0], count) for k in range(2))
        return [self._along(at, side) for at, side in zip((y, x), sides, strict=True)]

    def _along(self, at: Vec, side: ImageAxis) -> list[Tap]:
        """The pixels around coordinates along one axis."""
        at = (at + 1.0) * side.last if self.align_corners else (at + 1.0) * side.size - 1.0
        at = at * 0.5
        if self.mode == "nearest":
            return [self._tap(at.unary("rint"), side, None)]
        first = at.unary("floor")
        weights = _linear(at - first) if self.mode == "bilinear" else _cubic(at - first)
        begin = 0 if self.mode == "bilinear" else -1
        return [self._tap(first + float(k), side, weight) for k, weight in enumerate(weights, begin)]

    def _tap(self, at: Vec, side: ImageAxis, weights: Vec | None) -> Tap:
        """The pixels at integral coordinates, after padding. NaN is treated as beyond the last pixel."""
        if self.padding == "reflection":
            at = self._reflected(at, side)
        near = at.where(at.compare("olt", side.last), side.last).at_least(0.0)
        inside = near.compare("oeq", at) if self.padding == "zeros" else None
        return Tap(near.cast("fptosi", self.integer) * side.stride, inside, weights)

    def _reflected(self, at: Vec, side: ImageAxis) -> Vec:
        """Coordinates in −1…size: the remainder by the period, mirrored in the second half.

        It is computed twice: the first remainder is off by a few periods if the quotient has more than 24 bits.
        """
        at = at.where(at.compare("olt", FAR), FAR).at_least(-FAR)
        for _ in range(2):
            at = (at * side.inverse).unary("floor").times_plus(-side.period, at)
        mirrored = (side.period if self.align_corners else side.period - 1.0) - at
        return mirrored.where(at.compare("oge", side.size), at)


def pixel(row: Tap, column: Tap) -> tuple[Vec, Bool | None]:
    """The offsets of the pixels at a row and a column, and a mask of the pixels in the image (None if all are)."""
    offsets = row.offsets + column.offsets
    if row.inside is None or column.inside is None:
        return offsets, None
    return offsets, row.inside & column.inside


def weighted(weights: Sequence[Vec | None], terms: Sequence[Vec]) -> Vec:
    """The sum of terms, each with its weight."""
    first, *rest = (t if w is None else w * t for w, t in zip(weights, terms, strict=True))
    return reduce(Vec.__add__, rest, first)


def _linear(r: Vec) -> tuple[Vec, ...]:
    return 1.0 - r, r


def _cubic(r: Vec) -> tuple[Vec, ...]:
    """The four weights of cubic convolution with a = −0.75, at distance `r` from the second pixel."""
    a = -0.75

    def near(d: Vec) -> Vec:
        return ((a + 2) * d - (a + 3)) * d * d + 1.0

    def far(d: Vec) -> Vec:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return far(r + 1.0), near(r), near(1.0 - r), far(2.0 - r)

"""GridSample: weighted sums of the pixels around the points of a grid.

Vectors are along the points. Offsets and weights of pixels are computed once for all channels; pixels are gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.plan.backends.llvm.arguments import Arguments, moved, unknown, walk_lines
from irload.plan.backends.llvm.axes import ANY, Axis, AxisLoop, any_sizes, merged, size_of, table
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.grid_points import GridSampler, ImageAxis, Tap, pixel, weighted
from irload.plan.backends.llvm.kernels.loops import either, repeat
from irload.plan.backends.llvm.operands import write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.steps import SampleStep
from irload.record import record


def select_sample(step: SampleStep, selector: Selector) -> list[Launch]:
    """The kernel of a GridSample."""
    x, grid = (selector.array(v) for v in step.inputs)
    y = selector.array(step.output)
    (n, channels, *sizes), lanes = x.shape, selector.target.lanes
    strides = [(y.strides[to], grid.strides[k]) for to, k in ((0, 0), (2, 1), (3, 2))]
    lines = merged([Axis(size, s) for size, s in zip(grid.shape[1:3], strides[1:], strict=True)])
    points = lines.pop() if lines else Axis(1, (4, 8))
    outer = merged([Axis(n, (*strides[0], x.strides[0])), *(Axis(axis.size, (*axis.strides, 0)) for axis in lines)])
    elements = sum((size - 1) * abs(stride) // 4 for size, stride in zip(sizes, x.strides[2:], strict=True))
    pairs = (points.strides[1], grid.strides[3]) == (8, 4)
    sampler = GridSampler(step.mode, step.padding, step.align_corners, pairs, "i32" if elements < 1 << 31 else "i64")
    image = tuple(Axis(*axis) for axis in zip(sizes, zip(x.strides[2:], strict=True), strict=True))
    channel = Axis(channels, (y.strides[1], x.strides[1]))
    kernel = GridSampling(lanes, sampler, tuple(outer), points, grid.strides[3], channel, image)
    return [selector.launch(kernel, [y, grid, x])]


@record()
class GridSampling(Kernel):
    """y[n,c,p] = Σ x[n,c,rows,columns] · weights at the point p of grid [n,p,2]. Pointers: y, grid, x.

    A unit is a vector of points. Strides in bytes: `outer`, of y, grid and x; `points`, of y and grid; `coordinate`, of
    the grid between x and y of a point; `channels`, of y and x; `image`, of x along height and width. The code reads
    all sizes.
    """

    lanes: int
    sampler: GridSampler
    outer: tuple[Axis, ...]
    points: Axis
    coordinate: int
    channels: Axis
    image: tuple[Axis, ...]

    @property
    def code(self) -> GridSampling:
        (channels,) = any_sizes([self.channels])
        return replace(self, outer=(), points=self._key, coordinate=0, channels=channels, image=())

    @property
    def _key(self) -> Axis:
        """The points in the key of the code: only whether y is contiguous along them is compiled in."""
        return Axis(ANY, (4 if self.points.strides[0] == 4 else ANY, ANY))

    @property
    def numbers(self) -> tuple[int, ...]:
        sides = [number for axis in self.image for number in self.sampler.numbers(axis.size, *axis.strides)]
        loops = unknown((self.points, self.channels), (self._key, *any_sizes([self.channels])))
        return (*sides, *loops, self.coordinate, self._vectors, *table(self.outer, 3))

    @property
    def count(self) -> int:
        return size_of(self.outer) * self._vectors

    @property
    def cycles(self) -> float:
        taps = self.sampler.taps
        return self.count * (40 + 10 * taps + self.channels.size * taps**2 * self.lanes)

    @property
    def _vectors(self) -> int:
        """The vectors per line of points."""
        return -(-self.points.size // self.lanes)

    def write(self, function: Function) -> None:
        f, arguments = function, Arguments(function)
        pointers = arguments.pointers(3)
        sides = [ImageAxis.read(f, arguments, self.sampler.integer) for _ in range(2)]
        points, channels = arguments.filled((self._key, *any_sizes([self.channels])))
        coordinate, vectors = arguments.integers(2)
        outer = arguments.table(3)
        for starts, vector in walk_lines(f, vectors, outer, pointers):
            first = vector * self.lanes
            y, grid, x = moved(starts, [*(first * s for s in points.strides), 0])
            rest = points.size - first
            for count in either(f, rest < self.lanes, rest, None):
                taps = self.sampler.find(f, sides, grid, (points.strides[1], coordinate), count)
                self._sample(f, [y, x], channels, points.strides[0], taps, count)

    def _sample(
        self,
        f: Function,
        pointers: list[Pointer],
        channels: AxisLoop,
        stride: AnyInt,
        taps: Sequence[list[Tap]],
        count: AnyInt | None,
    ) -> None:
        """Write all channels of `count` points, by default of a whole vector."""
        rows, columns = taps
        for k in repeat(f, 0, channels.size):
            to, source = moved(pointers, [k * s for s in channels.strides])
            weights = [tap.weights for tap in columns]
            lines = [weighted(weights, [self._pixels(f, source, row, column) for column in columns]) for row in rows]
            write(f, weighted([tap.weights for tap in rows], lines), to, 0, stride, count)

    def _pixels(self, f: Function, source: Pointer, row: Tap, column: Tap) -> Vec:
        offsets, inside = pixel(row, column)
        elements = f.gather(source, offsets)
        return elements if inside is None else elements.where(inside, 0.0)

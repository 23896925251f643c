"""Samples of images at points: weighted sums of the pixels around each point.

Offsets and weights of pixels are computed for a vector of points at once. If the channels of images are contiguous,
vectors of channels are then loaded for one point after another, and transposed if the channels of results are not
contiguous. Otherwise pixels are gathered, one point per lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from irload.core.size import alike
from irload.core.tensor import Array
from irload.plan.backends.llvm.arguments import Arguments, moved, unknown
from irload.plan.backends.llvm.axes import ANY, Axis, AxisLoop, any_sizes, merged
from irload.plan.backends.llvm.builder import AnyBool, AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.blocks import LineKernel
from irload.plan.backends.llvm.kernels.grid_points import GridSampler, ImageAxis, Tap, interpolated
from irload.plan.backends.llvm.kernels.loops import either, repeat
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.shuffles import transposed
from irload.plan.backends.llvm.sized_arrays import spread
from irload.plan.ir.steps import SampleStep, SampleSumStep
from irload.record import record


def select_sample(step: SampleStep, selector: Selector) -> list[Launch]:
    """The kernel of a GridSample."""
    x, grid = (selector.array(v) for v in step.inputs)
    y = selector.array(step.output)
    strides = [(y.strides[to], grid.strides[k]) for to, k in ((0, 0), (2, 1), (3, 2))]
    lines = merged([Axis(size, s) for size, s in zip(grid.shape[1:3], strides[1:], strict=True)])
    points = lines.pop() if lines else Axis(1, (4, 8))
    outer = [Axis(x.shape[0], (*strides[0], x.strides[0])), *(Axis(axis.size, (*axis.strides, 0)) for axis in lines)]
    sampler = partial(GridSampler, step.mode, step.padding, "corners" if step.align_corners else "edges", None)
    kernel = _sampling(x, y, grid, points, outer, sampler, selector.target.lanes)
    return [selector.launch(kernel, [y, grid, x])]


def select_sample_sum(step: SampleSumStep, selector: Selector) -> list[Launch]:
    """The kernel of weighted sums of samples."""
    x, grid, factors, images = (selector.array(v) for v in step.inputs)
    y, factors = selector.array(step.output), spread(factors, grid.shape[:3])
    points = Axis(grid.shape[1], (y.strides[2], grid.strides[1], factors.strides[1]))
    outer = [Axis(len(images), (y.strides[0], grid.strides[0], 0, factors.strides[0], images.strides[0]))]
    sampler = partial(GridSampler, "bilinear", step.padding, "pixels", step.bounds)
    kernel = _sampling(x, y, grid, points, outer, sampler, selector.target.lanes)
    samples = Axis(grid.shape[2], (grid.strides[2], factors.strides[2]))
    kernel = replace(kernel, samples=samples, image_stride=x.strides[0])
    return [selector.launch(kernel, [y, grid, x, factors, images])]


def _sampling(
    x: Array, y: Array, grid: Array, points: Axis, outer: Sequence[Axis], sampler: partial[GridSampler], lanes: int
) -> GridSampling:
    """The kernel without sums. `sampler`: without its last two fields."""
    sizes, strides = x.shape[2:], x.strides[2:]
    elements = sum((size - 1) * abs(stride) // 4 for size, stride in zip(sizes, strides, strict=True))
    pairs = (points.strides[1], grid.strides[-1]) == (8, 4)
    points_of = sampler(pairs, "i32" if elements < 1 << 31 else "i64")
    image = tuple(Axis(*axis) for axis in zip(sizes, zip(strides, strict=True), strict=True))
    channels = Axis(x.shape[1], (y.strides[1], x.strides[1]))
    along = channels.size >= lanes and channels.strides[1] == 4
    return GridSampling(tuple(merged(outer)), lanes, points_of, points, grid.strides[-1], channels, image, along)


@record()
class GridSampling(LineKernel):
    """y[n,c,p] = Σ x[n,c,rows,columns] · weights at the point p of grid [n,p,2]. Pointers: y, grid, x.

    A unit is a vector of points. Strides in bytes: `outer`, of y, grid and x; `points`, of y and grid; `coordinate`, of
    the grid between the coordinates of a point; `channels`, of y and x; `image`, of x along height and width. `along`:
    vectors are along the channels. The code reads all sizes.

    With `samples`, y[n,c,p] is a sum over the samples of grid [n,p,samples,2] in x[images[n]], each multiplied by a
    factor [n,p,samples]. More pointers: factors, images. The axes then have their strides as well; `image_stride` is
    the stride of x between images.
    """

    lanes: int
    sampler: GridSampler
    points: Axis
    coordinate: int
    channels: Axis
    image: tuple[Axis, ...]
    along: bool
    samples: Axis | None = None
    image_stride: int = 0

    @property
    def code(self) -> GridSampling:
        # The strides of y along points and of contiguous channels are compiled in.
        to, *others = self.points.strides
        points = Axis(ANY, (4 if to == 4 else ANY, *(ANY for _ in others)))
        (channels,) = any_sizes([self.channels])
        if self.along:
            channels = Axis(ANY, (4 if self.channels.strides[0] == 4 else ANY, 4))
        samples = self.samples and Axis(1 if alike(self.samples.size, 1) else ANY, (ANY, ANY))
        strides = {"coordinate": ANY, "image_stride": ANY}
        return replace(self, outer=(), points=points, channels=channels, image=(), samples=samples, **strides)

    @property
    def tensors(self) -> int:
        return 3 if self.samples is None else 5

    @property
    def given_numbers(self) -> tuple[int, ...]:
        sides = [number for axis in self.image for number in self.sampler.numbers(axis.size, *axis.strides)]
        return (*sides, *unknown(self, self.code))

    @property
    def cycles(self) -> float:
        taps = self.sampler.taps
        samples = 1 if self.samples is None else self.samples.size
        pixels = self.channels.size * taps**2 * (1 if self.along else self.lanes)
        return self.count * samples * (40 + 10 * taps + pixels)

    @property
    def parts(self) -> int:
        return -(-self.points.size // self.lanes)

    def read(self, arguments: Arguments) -> tuple[list[ImageAxis], GridSampling]:
        return [ImageAxis.read(arguments, self.sampler.integer) for _ in range(2)], arguments.filled(self)

    def write_part(
        self, f: Function, given: tuple[list[ImageAxis], GridSampling], starts: list[Pointer], part: AnyInt
    ) -> None:
        sides, kernel = given
        points, samples, first = kernel.points, kernel.samples, part * self.lanes
        y, grid = moved(starts[:2], [first * s for s in points.strides[:2]])
        x, rest, strides = starts[2], points.size - first, (points.strides[1], kernel.coordinate)
        if samples is not None:
            x = x + f.load_int(starts[4]) * kernel.image_stride
        sampling = partial(_Sampling, f, self.along, kernel.channels, y, x, points.strides[0])
        for count in [f.minimum(rest, self.lanes)] if self.along else either(f, rest < self.lanes, rest, None):
            if samples is None:
                sampling(count).write(self.sampler.find(f, sides, grid, strides, count))
                continue
            factors = starts[3] + first * points.strides[2]
            for k in repeat(f, 0, samples.size):
                taps = self.sampler.find(f, sides, grid + k * samples.strides[0], strides, count)
                factor = read(f, factors, k * samples.strides[1], points.strides[2], count)
                sampling(count, factor, k > 0).write(taps)


@record()
class _Sampling:
    """Emits the samples of all channels at `count` points. `stride`: of y between points.

    The samples are multiplied by a `factor` per point, and added to y if `is_added`.
    """

    f: Function
    along: bool
    channels: AxisLoop
    y: Pointer
    x: Pointer
    stride: AnyInt
    count: AnyInt | None
    factor: Vec | None = None
    is_added: AnyBool = False

    def write(self, taps: Sequence[Sequence[Tap]]) -> None:
        """Write the samples at points with these taps."""
        f, channels, count, factor = self.f, self.channels, self.count, self.factor
        if not self.along:
            for k in repeat(f, 0, channels.size):
                y, x = moved([self.y, self.x], [k * s for s in channels.strides])
                value = interpolated(taps, lambda offsets, x=x: f.gather(x, offsets))
                self._put(value, y, self.stride, count, factor)
            return
        taps_of = [[tap.of_each(f) for tap in axis] for axis in taps]
        if channels.strides[0] != 4:
            self._write_transposed(taps_of)
            return
        factors = None if factor is None else f.stored(factor)
        for lane in f.range(0, f.lanes if count is None else count):
            near = [[tap(lane) for tap in axis] for axis in taps_of]
            scale = None if factors is None else f.broadcast(factors, 4 * lane)
            for first in f.range(0, channels.size, f.lanes):
                rest = channels.size - first
                for n in either(f, rest < f.lanes, rest, None):
                    value = interpolated(near, lambda at, n=n: f.load(self.x, 4 * (at + first), n))
                    self._put(value, self.y + lane * self.stride + 4 * first, 4, n, scale)

    def _write_transposed(self, taps_of: Sequence[Sequence[Callable[[AnyInt], Tap]]]) -> None:
        """Write samples whose channels are contiguous only in the image, by squares of points × channels."""
        f, channels, row = self.f, self.channels, 4 * self.f.lanes
        square = f.local(f.lanes * row)
        for first in f.range(0, channels.size, f.lanes):
            rest = channels.size - first
            for n in either(f, rest < f.lanes, rest, None):
                for lane in f.range(0, f.lanes if self.count is None else self.count):
                    near = [[tap(lane) for tap in axis] for axis in taps_of]
                    f.store(interpolated(near, lambda at, n=n: f.load(self.x, 4 * (at + first), n)), square, lane * row)
            for channel, samples in enumerate(transposed(f, [f.load(square, k * row) for k in range(f.lanes)])):
                f.store(samples, square, channel * row)
            for channel in f.range(0, f.minimum(rest, f.lanes)):
                y = self.y + (first + channel) * channels.strides[0]
                self._put(f.load(square, channel * row), y, self.stride, self.count, self.factor)

    def _put(self, value: Vec, y: Pointer, stride: AnyInt, count: AnyInt | None, factor: Vec | None) -> None:
        """Store samples at points, or for channels."""
        if factor is not None:
            value = value * factor
        if self.is_added is not False:
            value = value + self.f.select(self.is_added, read(self.f, y, 0, stride, count), self.f.zero())
        write(self.f, value, y, 0, stride, count)

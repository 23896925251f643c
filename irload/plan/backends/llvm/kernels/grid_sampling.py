"""GridSample: sums of weighted pixels at points that a grid gives.

Vectors run along points. Places and weights are computed once for a vector and serve all channels, whose pixels are
gathered.
"""

from __future__ import annotations

from dataclasses import replace

from irload.plan.backends.llvm.axes import Axis, merged
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.grid_channels import ChannelSampling
from irload.plan.backends.llvm.kernels.grid_points import Sampler, Side, Tap, weighted
from irload.plan.backends.llvm.kernels.loops import repeat
from irload.plan.backends.llvm.kernels.point_sampling import PointSampling
from irload.plan.backends.llvm.operands import write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.spans import moved
from irload.plan.backends.llvm.vectors import Vector
from irload.plan.ir.steps import Sample
from irload.record import record


def select_sample(step: Sample, selector: Selector) -> list[Launch]:
    """The kernel of a GridSample."""
    x, grid = (selector.array(v) for v in step.inputs)
    y = selector.array(step.output)
    (n, channels, height, width), lanes = x.shape, selector.target.lanes
    strides = [(y.strides[to], grid.strides[k]) for to, k in ((0, 0), (2, 1), (3, 2))]
    lines = merged([Axis(size, s) for size, s in zip(grid.shape[1:3], strides[1:], strict=True)])
    points = lines.pop() if lines else Axis(1, (4, 8))
    outer = merged([Axis(n, (*strides[0], x.strides[0])), *(Axis(axis.size, (*axis.strides, 0)) for axis in lines)])
    rows, columns = Side(height, x.strides[2]), Side(width, x.strides[3])
    reach, together, images = [rows, columns], merged([Axis(n, strides[0]), points]), None
    if channels == 1 and n > 1 and not lines and len(together) == 1 and points.size % lanes:
        reach, images = [rows, columns, Side(n, x.strides[0])], (points.size, x.strides[0])
        (points,), outer = together, []
    elements = sum((side.size - 1) * abs(side.stride) // 4 for side in reach)
    integer = "i32" if max(elements, points.size) < 1 << 31 else "i64"
    how, apart = (step.mode, step.padding, step.align_corners), (points.strides[1], grid.strides[3])
    sampler = Sampler(*how, rows, columns, *apart, integer)
    axis = Axis(channels, (y.strides[1], x.strides[1]))
    if x.strides[1] == 4 and 2 * channels >= lanes:  # with fewer, gathers are as fast (Sapphire Rapids)
        kernel: Kernel = ChannelSampling(lanes, sampler, tuple(outer), points, axis)
    else:
        kernel = GridSampling(lanes, sampler, tuple(outer), points, axis, images)
    return [selector.launch(kernel, [y, grid, x])]


@record()
class GridSampling(PointSampling):
    """Vectors of points, whose pixels are gathered channel by channel.

    `images`: the points of each image, where those of several are one axis, and the bytes between these images in x.
    """

    images: tuple[int, int] | None

    @property
    def cycles(self) -> float:
        taps = self.sampler.taps
        return self.count * (40 + 10 * taps + self.channels.size * taps**2 * self.lanes)

    def _sample(
        self, f: Function, y: Value, image: Value, taps: tuple[list[Tap], list[Tap]], first: Int, count: int | None
    ) -> None:
        rows, columns = taps
        if self.images is not None:
            start = self._image(f, *self.images, first, count or f.lanes)
            rows = [replace(row, places=self.sampler.integers(f, "add", row.places, start)) for row in rows]

        def channel(k: Int) -> None:
            to, source = moved(f, [y, image], [f.multiply(k, s) for s in self.channels.strides])
            lines = [
                weighted([tap.weights for tap in columns], [self._pixels(f, source, row, tap) for tap in columns])
                for row in rows
            ]
            total = weighted([tap.weights for tap in rows], lines)
            write(f, total.value, to, 0, self.points.strides[0], count)

        repeat(f, 0, self.channels.size, 1, channel)

    def _image(self, f: Function, points: int, apart: int, at: Int, count: int) -> Value:
        """The elements from the first image to that of each point; lanes from `count` on stay in the last one."""
        integer = self.sampler.integer
        kind = f"<{f.lanes} x {integer}>"
        first = f.value(integer, f"trunc i64 {at} to i32") if integer == "i32" else at
        place = f.value(kind, f"insertelement {kind} poison, {integer} {first}, i64 0")
        place = f.value(kind, f"shufflevector {kind} {place}, {kind} poison, {f.integers} zeroinitializer")
        lanes = ", ".join(f"{integer} {min(k, count - 1)}" for k in range(f.lanes))
        place = f.value(kind, f"add {kind} {place}, <{lanes}>")
        return self.sampler.integers(f, "mul", self.sampler.integers(f, "udiv", place, points), apart // 4)

    def _pixels(self, f: Function, source: Value, row: Tap, column: Tap) -> Vector:
        """Pixels of one channel, those outside 0."""
        places, inside = self.sampler.pixel(f, row, column)
        kind = f"<{f.lanes} x ptr>"
        pointers = f.value(kind, f"getelementptr float, ptr {source}, {places.type} {places}")
        name = f"@llvm.masked.gather.v{f.lanes}f32.v{f.lanes}p0"
        all_lanes = f"{f.booleans} splat (i1 true), {f.vector} zeroinitializer"
        found = Vector(f, f.value(f.vector, f"call {f.vector} {name}({kind} {pointers}, i32 4, {all_lanes})"))
        return found if inside is None else found.where(inside, 0.0)

"""GridSample: the values of an image at the points of a grid."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.op import Op
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch

FAR = 2.0**40
"""The bound in pixels to which coordinates are clamped, so that they fit integers."""


class GridSample(Op, since=9):
    """Samples `data` [N, C, H, W] at the points (x, y) of `grid` [N, H', W', 2]; the result is [N, C, H', W'].

    Specification: GridSample-9. With `align_corners`, −1 and 1 are the centres of the outermost pixels, else their
    outer edges. Pixels outside the image are 0 (`zeros`), the nearest pixel inside (`border`), or mirrored
    (`reflection`, at the centre or the edge of the last pixel, as `align_corners` selects). Mode nearest rounds halves
    to even; the other modes truncate integers.
    """

    align_corners = attr.boolean(default=False)
    mode = attr.choice("bilinear", "bicubic", "nearest", default="bilinear")
    padding_mode = attr.choice("zeros", "border", "reflection", default="zeros")

    def infer(self, data: TensorType, grid: TensorType) -> TensorType:
        if not (grid.element.is_float or grid.element.is_dynamic):
            raise TypeMismatch(f"grid must be of a floating-point type, found {grid.element}")
        if not data.element.is_numeric:
            raise TypeMismatch(f"data must be of a numeric type, found {data.element}")
        for name, tensor in (("data", data), ("grid", grid)):
            if tensor.rank not in (None, 4):
                raise ShapeMismatch(f"{name} must be of rank 4, found {tensor.shape}")
        image = data.shape if data.rank is not None else Shape.any(4)
        points = grid.shape if grid.rank is not None else Shape.any(4)
        if not points[3].contains(2):
            raise ShapeMismatch(f"the last dimension of grid must be 2 (x and y), found {points}")
        batch = image[0].meet(points[0])
        if batch is None:
            raise ShapeMismatch(f"data and grid must agree in their batch, found {image} and {points}")
        if any(d.hi == 0 for d in image[2:]) and self.padding_mode != "zeros" and points.size.lo:
            raise ShapeMismatch(f"data {image} has no pixel that padding_mode {self.padding_mode} could repeat")
        return TensorType(data.element, Shape(batch, image[1], points[1], points[2]))

    def compute(self, data: Array, grid: Array) -> Array:
        n, channels, height, width = data.shape
        shape = (n, channels, *grid.shape[1:3])
        if 0 in shape or 0 in data.shape:
            return np.zeros(shape, data.dtype)
        points = grid.reshape(n, 1, -1, 2)
        x, y = self._pixels(points[..., 0], width), self._pixels(points[..., 1], height)
        image = data.reshape(n, channels, -1)
        if self.mode == "nearest":
            return self._pixel_values(image, np.rint(y), np.rint(x), height, width).reshape(shape)
        left, top = np.floor(x), np.floor(y)
        offsets, weights = ((0, 1), _linear) if self.mode == "bilinear" else ((-1, 0, 1, 2), _cubic)
        across, down = weights(x - left), weights(y - top)
        result = np.zeros((), grid.dtype)
        for dy, wy in zip(offsets, down, strict=True):
            row = np.zeros((), grid.dtype)
            for dx, wx in zip(offsets, across, strict=True):
                row = row + wx * self._pixel_values(image, top + dy, left + dx, height, width).astype(grid.dtype)
            result = result + wy * row
        return result.astype(data.dtype).reshape(shape)

    def _pixels(self, at: Array, size: int) -> Array:
        """Coordinates of −1..1 converted to pixels."""
        if self.align_corners:
            return (at + 1) * (size - 1) / 2
        return ((at + 1) * size - 1) / 2

    def _pixel_values(self, image: Array, y: Array, x: Array, height: int, width: int) -> Array:
        """The pixels [N, C, points] at whole coordinates [N, 1, points], padded if they are outside."""
        y, x = _whole(y), _whole(x)
        if self.padding_mode == "reflection":
            y, x = self._mirrored(y, height), self._mirrored(x, width)
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        at = y.clip(0, height - 1) * width + x.clip(0, width - 1)
        values = np.take_along_axis(image, at, axis=2)
        return np.where(inside, values, 0).astype(image.dtype) if self.padding_mode == "zeros" else values

    def _mirrored(self, at: Array, size: int) -> Array:
        if self.align_corners:
            period = max(2 * (size - 1), 1)
            at = at % period
            return np.where(at >= size, period - at, at)
        at = at % (2 * size)
        return np.where(at >= size, 2 * size - 1 - at, at)


def _whole(at: Array) -> Array:
    """Whole coordinates as integers, clamped to ±2⁴⁰; NaN becomes 2⁴⁰."""
    return np.nan_to_num(at, nan=FAR).clip(-FAR, FAR).astype(np.int64)


def _linear(r: Array) -> tuple[Array, ...]:
    return 1 - r, r


def _cubic(r: Array) -> tuple[Array, ...]:
    """The four weights of cubic convolution with a = −0.75, at distance `r` from the second pixel."""
    a = -0.75

    def near(d: Array) -> Array:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Array) -> Array:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return far(r + 1), near(r), near(1 - r), far(2 - r)

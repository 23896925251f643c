"""ExtractImagePatches (im2col) and Col2Im: windows of an image as columns, and back by summation."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch
from irload.ops.ports import require_integer, require_rank
from irload.ops.windows import meeting


def _pairs(op: Op, *names: str) -> None:
    """Raise AttributeInvalid for an attribute without exactly one value for rows and one for columns."""
    for name in names:
        value = op.attributes[name]
        if len(value) != 2:
            raise AttributeInvalid(f"attribute {name} must hold two values, rows and columns, found {list(value)}")


class ExtractImagePatches(Op, since=3):
    """Copies the patches of an image [N, C, H, W] to channels.

    Specification: ExtractImagePatches-3. Patches have `sizes`, a stride of `strides` and a dilation of `rates`; channel
    (row·columns + column)·C + c is channel c of that element of the patch. `auto_pad` valid uses only patches inside
    the image; same_upper and same_lower pad with zeros, with the odd one at the end or the beginning.
    """

    sizes = attr.integers(rule=attr.positive)
    strides = attr.integers(rule=attr.positive)
    rates = attr.integers(rule=attr.positive)
    auto_pad = attr.choice("valid", "same_upper", "same_lower")

    widens = False

    def validate(self) -> None:
        _pairs(self, "sizes", "strides", "rates")

    def infer(self, data: TensorType) -> TensorType:
        require_rank("data", data, 4)
        if data.rank is None:
            return TensorType(data.element, Shape.any(4))
        batch, channels, *space = data.shape
        if all(d.is_static for d in space) and Dim(0, 0) in space:
            return data.without_value()
        counts = [
            Dim(self._count(d.lo, k), None if d.hi is None else self._count(d.hi, k)) for k, d in enumerate(space)
        ]
        return TensorType(data.element, Shape(batch, channels * (self.sizes[0] * self.sizes[1]), *counts))

    def _count(self, size: int, k: int) -> int:
        """Patches along spatial axis k."""
        if self.auto_pad == "valid":
            return max((size - self.rates[k] * (self.sizes[k] - 1) - 1) // self.strides[k] + 1, 0)
        return (size - 1) // self.strides[k] + 1

    def _begin(self, size: int, k: int) -> int:
        """Zeros before the first element of spatial axis k."""
        span = (self._count(size, k) - 1) * self.strides[k] + (self.sizes[k] - 1) * self.rates[k] + 1
        total = max(span - size, 0)
        return total // 2 if self.auto_pad == "same_upper" else total - total // 2

    def compute(self, data: Array) -> Array:
        batch, channels, *space = data.shape
        if 0 in space:
            return data
        counts = [self._count(n, k) for k, n in enumerate(space)]
        begins = [self._begin(n, k) for k, n in enumerate(space)]
        result = np.zeros((batch, self.sizes[0], self.sizes[1], channels, *counts), data.dtype)
        for row in range(self.sizes[0]):
            for column in range(self.sizes[1]):
                (top, y), (left, x) = (
                    meeting(tap, self.strides[k], self.rates[k], begins[k], counts[k], space[k])
                    for k, tap in enumerate((row, column))
                )
                result[:, row, column, :, top, left] = data[:, :, y, x]
        return result.reshape(batch, -1 if result.size else self.sizes[0] * self.sizes[1] * channels, *counts)


class Col2Im(Op, since=15):
    """Sums the columns of sliding windows into the image from which they were extracted.

    Specification: Col2Im-15. data is [N, C·prod(kernel_size), L] or without N, L the number of windows; the output is
    [N, C, *output_size].
    """

    strides = attr.integers(default=(1, 1), rule=attr.positive)
    dilations = attr.integers(default=(1, 1), rule=attr.positive)
    pads_begin = attr.integers(default=(0, 0), rule=attr.non_negative)
    pads_end = attr.integers(default=(0, 0), rule=attr.non_negative)

    def validate(self) -> None:
        _pairs(self, "strides", "dilations", "pads_begin", "pads_end")

    def infer(self, data: TensorType, output_size: TensorType, kernel_size: TensorType) -> TensorType:
        require_integer(output_size=output_size, kernel_size=kernel_size)
        merge(output_size.element, kernel_size.element)
        require_rank("data", data, 2, 3)
        for name, pair in (("output_size", output_size), ("kernel_size", kernel_size)):
            if pair.shape.meet(Shape(2)) is None:
                raise ShapeMismatch(f"{name} must be of shape [2], found {pair.shape}")
            if pair.ints is not None and min(pair.ints) < 1:
                raise ShapeMismatch(f"{name} must be positive, found {list(pair.ints)}")
        if data.rank is None:
            return TensorType(data.element, Shape.unranked())
        *batch, columns, windows = data.shape
        kernel, size = kernel_size.ints, output_size.dims or (ANY, ANY)
        depth = ANY
        if kernel is not None and columns.is_static:
            if columns.size % (kernel[0] * kernel[1]):
                raise ShapeMismatch(
                    f"dimension {columns} of data must be divisible by the kernel {kernel[0]}x{kernel[1]}"
                )
            depth = columns // (kernel[0] * kernel[1])
        if kernel is not None and windows.is_static and all(d.is_static for d in size):
            expected = self._windows([d.size for d in size], kernel)
            if windows != Dim(expected, expected):
                raise ShapeMismatch(f"data has {windows} windows where output_size and kernel_size give {expected}")
        return TensorType(data.element, Shape(*batch, depth, *size))

    def _counts(self, size: list[int], kernel: tuple[int, ...]) -> list[int]:
        """Windows along each axis of the image."""
        return [
            (size[k] + self.pads_begin[k] + self.pads_end[k] - self.dilations[k] * (kernel[k] - 1) - 1)
            // self.strides[k]
            + 1
            for k in (0, 1)
        ]

    def _windows(self, size: list[int], kernel: tuple[int, ...]) -> int:
        rows, columns = self._counts(size, kernel)
        return max(rows, 0) * max(columns, 0)

    def compute(self, data: Array, output_size: Array, kernel_size: Array) -> Array:
        size, (height, width) = output_size.tolist(), kernel_size.tolist()
        rows, columns = self._counts(size, (height, width))
        *batch, depth, _ = data.shape
        depth //= height * width
        windows = data.reshape(*batch, depth, height, width, rows, columns)
        image = np.zeros((*batch, depth, *size), data.dtype)
        for row in range(height):
            for column in range(width):
                (top, y), (left, x) = (
                    meeting(tap, self.strides[k], self.dilations[k], self.pads_begin[k], count, size[k])
                    for k, (tap, count) in enumerate(((row, rows), (column, columns)))
                )
                image[..., y, x] += windows[..., row, column, top, left]
        return image

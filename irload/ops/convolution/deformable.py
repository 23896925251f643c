"""DeformableConvolution: a convolution that samples each kernel element at an offset."""

from __future__ import annotations

import math

import numpy as np

from irload.core import attribute as attr
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.convolution.forward import ConvolutionBase, numeric_operands
from irload.ops.windows import NON_SPATIAL


class DeformableConvolution(ConvolutionBase, since=1):
    """Convolves data [N, C, H, W] with filters [O, C/group, kh, kw], sampling the data bilinearly at offsets.

    Specification: DeformableConvolution-1. offsets [N, deformable_group·kh·kw·2, oh, ow] are (y, x) for each element of
    the kernel; each deformable group applies to its part of the channels. Samples outside the input are zero.
    """

    group = attr.integer(default=1, rule=attr.positive)
    deformable_group = attr.integer(default=1, rule=attr.positive)

    bilinear_interpolation_pad: bool = False

    def infer(self, data: TensorType, offsets: TensorType, filters: TensorType) -> TensorType:
        return self.deformed(data, offsets, filters)

    def deformed(
        self, data: TensorType, offsets: TensorType, filters: TensorType, mask: TensorType | None = None
    ) -> TensorType:
        """The output. Raises ShapeMismatch, TypeMismatch or AttributeInvalid."""
        ports = {"data": data, "offsets": offsets, "filters": filters} | ({} if mask is None else {"mask": mask})
        element = numeric_operands(*ports.values())
        for name, tensor in ports.items():
            if tensor.rank not in (None, 4):
                raise ShapeMismatch(f"{name} must have rank 4, found shape {tensor.shape}")
        if all(t.rank is None for t in (data, offsets, filters)):
            return TensorType(element, Shape.unranked())
        shapes = {name: Shape.any(4) if t.rank is None else t.shape for name, t in ports.items()}
        self._check_channels(shapes)
        spatial = self.spatial_dims(shapes["data"], shapes["filters"], 2)
        batch = shapes["data"][0].meet(shapes["offsets"][0])
        if batch is None:
            raise ShapeMismatch(f"data and offsets must agree in batch, found {data.shape} and {offsets.shape}")
        for name in ("offsets", "mask"):
            if name not in shapes:
                continue
            if shapes[name][0].meet(batch) is None:
                raise ShapeMismatch(f"{name} must agree with the data in batch {batch}, found {shapes[name]}")
            if any(a.meet(b) is None for a, b in zip(shapes[name][2:], spatial, strict=True)):
                raise ShapeMismatch(f"{name} must have the output's spatial axes {spatial}, found {shapes[name]}")
        return TensorType(element, Shape(batch, shapes["filters"][0], *spatial))

    def _check_channels(self, shapes: dict[str, Shape]) -> None:
        data, filters = shapes["data"], shapes["filters"]
        for name, dim, count in (
            ("the channels of data", data[1], self.group),
            ("the channels of data", data[1], self.deformable_group),
            ("the out-channels of filters", filters[0], self.group),
        ):
            if not _divisible(dim, count):
                raise ShapeMismatch(f"{name} must be divisible by {count} groups, found {dim}")
        if data[1].meet(filters[1] * self.group) is None:
            raise ShapeMismatch(f"data has {data[1]} channels, filters take {self.group} groups of {filters[1]}")
        for name, each in (("offsets", 2), ("mask", 1)):
            channels = filters[2] * filters[3] * (each * self.deformable_group)
            if name in shapes and (
                shapes[name][1].meet(channels) is None or not _divisible(shapes[name][1], self.deformable_group)
            ):
                raise ShapeMismatch(f"{name} must have {channels} channels, found {shapes[name]}")

    def compute(self, data: Array, offsets: Array, filters: Array) -> Array:
        return self.sampled(data, offsets, filters, None)

    def sampled(self, data: Array, offsets: Array, filters: Array, mask: Array | None) -> Array:
        """The convolution, as one matrix product per element of the kernel."""
        batch, channels, groups = len(data), data.shape[1], self.group
        out_channels, _, *kernel = filters.shape
        rows, columns = offsets.shape[2:]
        dilations = self.per_axis("dilations", 2)
        starts = [
            np.arange(count) * stride - begin
            for count, stride, (begin, _) in zip(
                (rows, columns), self.per_axis("strides", 2), self.pads(data.shape[NON_SPATIAL:], kernel), strict=True
            )
        ]
        moves = offsets.reshape(batch, self.deformable_group, *kernel, 2, rows, columns)
        factors = None if mask is None else mask.reshape(batch, self.deformable_group, *kernel, rows, columns)
        parts = data.reshape(batch, self.deformable_group, channels // self.deformable_group, *data.shape[2:])
        weights = filters.reshape(groups, out_channels // groups, *filters.shape[1:])
        result = np.zeros((batch, groups, out_channels // groups, rows * columns), data.dtype)
        for ky, kx in np.ndindex(*kernel):
            y = (starts[0] + ky * dilations[0])[:, np.newaxis] + moves[:, :, ky, kx, 0]
            x = (starts[1] + kx * dilations[1]) + moves[:, :, ky, kx, 1]
            samples = self._bilinear(parts, y.astype(data.dtype), x.astype(data.dtype))
            if factors is not None:
                samples = samples * factors[:, :, np.newaxis, ky, kx]
            tap_weights = np.ascontiguousarray(weights[..., ky, kx])  # BLAS needs contiguous matrices
            result += tap_weights @ samples.reshape(batch, groups, channels // groups, rows * columns)
        return result.reshape(batch, out_channels, rows, columns)

    def _bilinear(self, data: Array, y: Array, x: Array) -> Array:
        """[N, D, C, H, W] sampled bilinearly at y and x of [N, D, oh, ow]."""
        height, width = data.shape[3:]
        if self.bilinear_interpolation_pad:  # the image is padded with one pixel of zeros
            inside = (y > -1) & (y < height) & (x > -1) & (x < width)
            top, left = np.floor(y), np.floor(x)
            bottom, right = top + 1, left + 1
        else:
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            top, left = np.maximum(np.floor(y), 0), np.maximum(np.floor(x), 0)
            bottom, right = np.minimum(np.ceil(y), height - 1), np.minimum(np.ceil(x), width - 1)
        down, along = y - top, x - left
        result = np.zeros((*data.shape[:3], *y.shape[2:]), data.dtype)
        flat = data.reshape(*data.shape[:3], height * width)
        for row, column, weight in (
            (top, left, (1 - down) * (1 - along)),
            (top, right, (1 - down) * along),
            (bottom, left, down * (1 - along)),
            (bottom, right, down * along),
        ):
            valid = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            indices = np.where(valid, row * width + column, 0).astype(np.int64)
            neighbours = np.take_along_axis(
                flat, indices.reshape(*indices.shape[:2], 1, math.prod(y.shape[2:])), 3
            ).reshape(result.shape)
            weight = np.where(valid, weight, 0).astype(data.dtype)[:, :, np.newaxis]
            result += np.where(valid[:, :, np.newaxis], neighbours, 0) * weight
        return result


class DeformableConvolution8(DeformableConvolution, type="DeformableConvolution", since=8):
    """DeformableConvolution with a mask for the samples, and two modes at the border.

    Specification: DeformableConvolution-8. mask [N, deformable_group·kh·kw, oh, ow] multiplies the samples. With
    bilinear_interpolation_pad, samples up to one pixel outside are blended with zeros instead of clamped to the edge.
    """

    bilinear_interpolation_pad = attr.boolean(default=False)

    def infer(
        self, data: TensorType, offsets: TensorType, filters: TensorType, mask: TensorType | None = None
    ) -> TensorType:
        return self.deformed(data, offsets, filters, mask)

    def compute(self, data: Array, offsets: Array, filters: Array, mask: Array | None = None) -> Array:
        return self.sampled(data, offsets, filters, mask)


def _divisible(dim: Dim, count: int) -> bool:
    """True if `dim` may be a multiple of `count`."""
    return dim.hi is None or dim.hi // count * count >= dim.lo

"""Pooling of regions with rounded corners: ROIPooling, PSROIPooling, DeformablePSROIPooling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irload.core import attribute as attr
from irload.core.op import Op
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch
from irload.ops.detection.ports import dim_of, require_floats, require_shape
from irload.ops.detection.sampling import batch_of, bilinear, cells, check_samples, round_away


def positive_number(value: float) -> str | None:
    """Validator: a finite number above zero."""
    return None if 0 < value < float("inf") else "must be a positive number"


def pair(value: tuple[int, ...]) -> str | None:
    """Validator: no or two positive sizes."""
    return None if not value or (len(value) == 2 and min(value) > 0) else "must be two positive sizes"


def check_ports(data: TensorType, rois: TensorType) -> TensorType:
    """Check data [batches, channels, height, width] and regions [n, 5]; returns the type of `data`."""
    element = require_floats(data=data, rois=rois)
    require_shape("data", data, None, None, None, None)
    require_shape("rois", rois, None, 5)
    return TensorType(element, data.shape)


def pool_rois(data: Array, rois: Array, shape: tuple[int, ...], pool: Callable[[Array, int], Array]) -> Array:
    """`pool(image, k)` of every region k. A batch index that truncates to −1 ends the list: later rows are 0."""
    result = np.zeros((len(rois), *shape), data.dtype)
    ends = np.flatnonzero(np.trunc(rois[:, 0]) == -1)
    for k in range(int(ends[0]) if len(ends) else len(rois)):
        result[k] = pool(data[batch_of(np.trunc(rois[k, 0]), len(data))], k)
    return result


def coordinates(start: Array, end: Array, count: int, size: int) -> Array:
    """`count` coordinates from each start to its end (normalized) along an axis of `size` cells; the middle for one."""
    low, high, last = start.astype(np.float32)[..., None], end.astype(np.float32)[..., None], np.float32(size - 1)
    if count == 1:
        return (low + high) * last / 2
    at = np.arange(count, dtype=np.float32) * ((high - low) * last / np.float32(count - 1)) + low * last
    at[..., -1:] = high * last  # the sum may round to a coordinate outside
    return at


class ROIPooling(Op, since=2, also_in=(1,)):
    """Pools regions (batch element, x1, y1, x2, y2) to `pooled_h` × `pooled_w` bins.

    Specification: ROIPooling-1. Method max: corners are scaled by `spatial_scale` and rounded, each bin is the maximum
    of its cells, 0 if it is empty. Method bilinear: corners are normalized to 0..1, each bin is one bilinear sample, 0
    outside the map. Newer files repeat the size as `output_roi` and `output_size`; `pooled_h` and `pooled_w` take
    precedence.
    """

    output_size = attr.integers(default=(), rule=pair)
    output_roi = attr.integers(default=(), rule=pair)
    pooled_h = attr.integer(default=0, rule=attr.positive)
    pooled_w = attr.integer(default=0, rule=attr.positive)
    spatial_scale = attr.number(rule=positive_number)
    method = attr.choice("max", "bilinear", default="max")

    def validate(self) -> None:
        if not all(self.bins):
            raise AttributeInvalid(f"attributes pooled_h and pooled_w must be positive, found {self.bins}")

    @property
    def bins(self) -> tuple[int, int]:
        """The bins along height and width."""
        height, width = self.output_roi or self.output_size or (0, 0)
        return self.pooled_h or height, self.pooled_w or width

    def infer(self, data: TensorType, rois: TensorType) -> TensorType:
        checked = check_ports(data, rois)
        return TensorType(checked.element, Shape(dim_of(rois, 0), dim_of(data, 1), *self.bins))

    def compute(self, data: Array, rois: Array) -> Array:
        (_, channels, height, width), bins = data.shape, self.bins
        shape = channels, *bins
        if self.method == "bilinear":
            y = coordinates(rois[:, 2], rois[:, 4], bins[0], height).astype(data.dtype)[..., None]
            x = coordinates(rois[:, 1], rois[:, 3], bins[1], width).astype(data.dtype)[:, None]
            inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
            return pool_rois(
                data, rois, shape, lambda image, k: bilinear(cells(image), y[k], x[k], (height, width)) * inside[k]
            )
        corners = round_away(rois[:, 1:] * rois.dtype.type(self.spatial_scale)).astype(np.int64)
        rows = _edges(corners[:, 1], corners[:, 3], bins[0], height)
        columns = _edges(corners[:, 0], corners[:, 2], bins[1], width)
        maps = data.transpose(0, 2, 3, 1)
        if len(rois) * bins[0] * bins[1] > len(data) * height * width:
            maps = maps.copy()  # contiguous channels are faster, but copying them pays only for a large output
        return pool_rois(maps, rois, shape, lambda image, k: _greatest(image, rows[k], columns[k]))


def _edges(start: Array, end: Array, count: int, size: int) -> Array:
    """The first cell of each of `count` bins over start..end and the one after its last: [regions, count, 2].

    They are clamped to the map. Bins may overlap by a cell.
    """
    step = np.maximum(end - start + 1, 1).astype(np.float32) / np.float32(count)
    at = np.arange(count + 1, dtype=np.float32) * step[:, None]
    edges = np.stack([np.floor(at[:, :-1]), np.ceil(at[:, 1:])], -1) + start[:, None, None]
    return np.clip(edges, 0, size).astype(int)


def _greatest(image: Array, rows: Array, columns: Array) -> Array:
    """The maximum of each bin of a map [height, width, channels], as [channels, rows, columns]."""
    left, right = columns[0, 0], columns[-1, 1]
    by_row = _maxima(image[:, left:right], rows)
    return _maxima(by_row.swapaxes(0, 1), columns - left).transpose(2, 1, 0)


def _maxima(image: Array, bins: Array) -> Array:
    """The maximum of each bin along the first axis, 0 if it is empty."""
    result = np.zeros((len(bins), *image.shape[1:]), image.dtype)
    for k, (start, end) in enumerate(bins.tolist()):
        if start < end:
            image[start:end].max(0, out=result[k])
    return result


class PSROIPooling(Op, since=1):
    """Position-sensitive pooling: each bin of a region reads separate channels.

    Specification: PSROIPooling-1. Output: [regions, output_dim, group_size, group_size]. Mode average: the mean of the
    cells of each bin, from output_dim · group_size² channels, with rounded corners. Mode bilinear: regions are divided
    into `spatial_bins_y` × `spatial_bins_x` parts with separate channels, each sampled at group_size² points; the
    result is the mean of the parts.
    """

    output_dim = attr.integer(rule=attr.positive)
    group_size = attr.integer(rule=attr.positive)
    spatial_scale = attr.number(rule=positive_number)
    mode = attr.choice("average", "bilinear")
    spatial_bins_x = attr.integer(default=0)
    spatial_bins_y = attr.integer(default=0)

    def validate(self) -> None:
        if self.mode == "bilinear" and (self.spatial_bins_x < 1 or self.spatial_bins_y < 1):
            raise AttributeInvalid(
                "attributes spatial_bins_x and spatial_bins_y must be positive in mode bilinear, "
                f"found {self.spatial_bins_x} and {self.spatial_bins_y}"
            )

    def infer(self, data: TensorType, rois: TensorType) -> TensorType:
        checked = check_ports(data, rois)
        parts = self.group_size**2 if self.mode == "average" else self.spatial_bins_x * self.spatial_bins_y
        if not dim_of(data, 1).contains(parts * self.output_dim):
            raise ShapeMismatch(f"data must have {parts} · {self.output_dim} channels, found {data.shape}")
        return TensorType(checked.element, Shape(dim_of(rois, 0), self.output_dim, self.group_size, self.group_size))

    def compute(self, data: Array, rois: Array) -> Array:
        size, scale = self.group_size, rois.dtype.type(self.spatial_scale)
        shape = self.output_dim, size, size
        if self.mode == "bilinear":
            return pool_rois(data, rois, shape, lambda image, k: self._sampled(image, rois[k, 1:]))
        start, end = round_away(rois[:, 1:3]) * scale, (round_away(rois[:, 3:]) + 1) * scale
        columns, rows = (self._edges(start[:, k], end[:, k], data.shape[3 - k]) for k in range(2))
        parts = data.reshape(len(data), *shape, *data.shape[2:])
        maps = parts.transpose(0, 3, 5, 2, 4, 1).copy()  # NumPy is fast if the last axis is long
        return pool_rois(maps, rois, shape, lambda image, k: _means(image, rows[k], columns[k]))

    def _edges(self, start: Array, end: Array, size: int) -> Array:
        step = (end - start) / np.float32(self.group_size)
        at = np.arange(self.group_size + 1, dtype=np.float32) * step[:, None] + start[:, None]
        edges = np.stack([np.floor(at[:, :-1]), np.ceil(at[:, 1:])], -1)
        return np.fmin(np.fmax(edges, 0), size).astype(int)  # NaN becomes 0

    def _sampled(self, image: Array, corners: Array) -> Array:
        _, height, width = image.shape
        start_x, start_y, end_x, end_y = corners * corners.dtype.type(self.spatial_scale)
        step_x, step_y = (end_x - start_x) / self.spatial_bins_x, (end_y - start_y) / self.spatial_bins_y
        left = start_x + np.arange(self.spatial_bins_x, dtype=corners.dtype) * step_x
        top = start_y + np.arange(self.spatial_bins_y, dtype=corners.dtype) * step_y
        check_samples(len(top) * len(left) * self.output_dim * self.group_size**2)
        # Axes: part row, part column, output channel, sample row, sample column.
        x = coordinates(left, left + step_x, self.group_size, width).astype(image.dtype)[:, None, None]
        y = coordinates(top, top + step_y, self.group_size, height).astype(image.dtype)[:, None, None, :, None]
        parts = image.reshape(len(top), len(left), self.output_dim, height, width)
        row, column, channel = (
            index[..., None, None] for index in np.ogrid[: len(top), : len(left), : self.output_dim]
        )
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        values = bilinear(lambda i, j: parts[row, column, channel, i, j], y, x, (height, width)) * inside
        return values.reshape(-1, *values.shape[2:]).sum(0) / (len(top) * len(left))


def _means(image: Array, rows: Array, columns: Array) -> Array:
    """The mean of each bin of a map [columns, width, rows, height, channels], as [channels, rows, columns]."""
    top, bottom = rows.min(), rows.max()
    spans = zip(image, columns.tolist(), strict=True)
    by_column = np.stack([part[start:end, :, top:bottom].sum(0) for part, (start, end) in spans])
    total = np.stack([by_column[:, k, start:end].sum(1) for k, (start, end) in enumerate((rows - top).tolist())])
    count = np.multiply.outer(*(edges[:, 1] - edges[:, 0] for edges in (rows, columns)))
    return (total / np.maximum(count, 1)[..., None].astype(image.dtype)).transpose(2, 0, 1)


class DeformablePSROIPooling(Op, since=1):
    """PSROIPooling with bins moved by learnt offsets, averaged over samples.

    Specification: DeformablePSROIPooling-1. Each of group_size² bins of a region is the mean of `spatial_bins_y` ×
    `spatial_bins_x` bilinear samples within half a cell of the map. `offsets` [regions, 2 · classes, part_size,
    part_size] move bins by (x, y) in units of the region's size times `trans_std`.
    """

    output_dim = attr.integer(rule=attr.positive)
    spatial_scale = attr.number(default=0.0, spec_required=True)
    group_size = attr.integer(default=1, rule=attr.positive)
    mode = attr.choice("bilinear_deformable", default="bilinear_deformable")
    spatial_bins_x = attr.integer(default=1, rule=attr.positive)
    spatial_bins_y = attr.integer(default=1, rule=attr.positive)
    trans_std = attr.number(default=1.0)
    part_size = attr.integer(default=1, rule=attr.positive)

    def infer(self, data: TensorType, rois: TensorType, offsets: TensorType | None = None) -> TensorType:
        checked = check_ports(data, rois)
        channels = self.output_dim * self.group_size**2
        if not dim_of(data, 1).contains(channels):
            raise ShapeMismatch(f"data must have {channels} channels, found {data.shape}")
        if offsets is not None:
            require_floats(data=data, offsets=offsets)
            require_shape("offsets", offsets, dim_of(rois, 0), None, self.part_size, self.part_size)
            coordinates = dim_of(offsets, 1)
            if coordinates.is_static and (coordinates.lo % 2 or not self._classes(coordinates)):
                raise ShapeMismatch(
                    f"offsets must have 2 channels for each part of {self.output_dim} outputs, found {offsets.shape}"
                )
        return TensorType(checked.element, Shape(dim_of(rois, 0), self.output_dim, self.group_size, self.group_size))

    def _classes(self, coordinates: Dim) -> bool:
        return coordinates.lo >= 2 and self.output_dim % (coordinates.lo // 2) == 0

    def compute(self, data: Array, rois: Array, offsets: Array | None = None) -> Array:
        size = self.group_size
        result = np.zeros((len(rois), self.output_dim, size, size), data.dtype)
        for k in np.flatnonzero(rois[:, 0] >= 0):
            moves = (
                np.zeros((2, self.output_dim, size, size), data.dtype) if offsets is None else self._moves(offsets[k])
            )
            result[k] = self._pool(data[batch_of(np.trunc(rois[k, 0]), len(data))], rois[k, 1:], moves)
        return result

    def _moves(self, offsets: Array) -> Array:
        """The moves along x and y of every bin of every output channel: [2, output_dim, group_size, group_size]."""
        classes = len(offsets) // 2
        part = np.arange(self.group_size) * self.part_size // self.group_size
        chosen = offsets.reshape(classes, 2, self.part_size, self.part_size)[:, :, part[:, None], part]
        return np.repeat(chosen, self.output_dim // classes, 0).swapaxes(0, 1) * offsets.dtype.type(self.trans_std)

    def _pool(self, image: Array, corners: Array, moves: Array) -> Array:
        size, (_, height, width) = self.group_size, image.shape
        scale, half = corners.dtype.type(self.spatial_scale), corners.dtype.type(0.5)
        start, end = round_away(corners[:2]) * scale - half, (round_away(corners[2:]) + 1) * scale - half
        extent = np.maximum(end - start, corners.dtype.type(0.1))
        # Axes: output channel, bin row, bin column, sample row, sample column.
        check_samples(self.output_dim * size * size * self.spatial_bins_x * self.spatial_bins_y)
        bins = np.arange(size, dtype=image.dtype)
        step = extent / size
        x = (start[0] + bins * step[0] + moves[0] * extent[0])[..., None, None]
        y = (start[1] + bins[:, None] * step[1] + moves[1] * extent[1])[..., None, None]
        x = x + np.arange(self.spatial_bins_x, dtype=image.dtype) * (step[0] / self.spatial_bins_x)
        y = y + np.arange(self.spatial_bins_y, dtype=image.dtype)[:, None] * (step[1] / self.spatial_bins_y)
        inside = (x >= -0.5) & (x <= width - 0.5) & (y >= -0.5) & (y <= height - 0.5)
        parts = image.reshape(self.output_dim, size, size, height, width)
        channel, row, column = (index[..., None, None] for index in np.ogrid[: self.output_dim, :size, :size])
        values = bilinear(lambda i, j: parts[channel, row, column, i, j], y, x, (height, width))
        count = inside.sum((3, 4))
        return (values * inside).sum((3, 4), dtype=image.dtype) / np.maximum(count, 1).astype(image.dtype)

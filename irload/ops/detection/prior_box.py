"""Boxes over a grid: PriorBox, PriorBoxClustered, ExperimentalDetectronPriorGridGenerator."""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from irload.core import attribute as attr
from irload.core.element import f32
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ExecutionError, ShapeMismatch
from irload.ops.detection.ports import agreed, dim_of, require_floats, require_shape
from irload.ops.ports import require_integer

F = np.float32


def variance_length(value: tuple[float, ...]) -> str | None:
    """Validator: no, one, or four variances."""
    return None if len(value) in (0, 1, 4) else "must be one or four values"


class PriorBase(Op):
    """Base of both operations: an output [2, 4 · height · width · priors] of f32, boxes and then their variances."""

    variance = attr.numbers(default=(), rule=variance_length)

    @property
    def count(self) -> int:
        """The number of boxes per cell."""
        raise NotImplementedError

    def infer(self, output_size: TensorType, image_size: TensorType) -> TensorType:
        require_integer(output_size=output_size, image_size=image_size)
        require_shape("output_size", output_size, 2)
        require_shape("image_size", image_size, None)
        size = ANY
        if any(n >= 1 << 63 for n in output_size.ints or ()):
            raise ShapeMismatch(f"output_size is out of range: {list(output_size.ints or ())}")
        if output_size.dims is not None:
            height, width = output_size.dims
            size = height * width * Dim.of(4 * self.count)
        return TensorType(f32, Shape(2, size))

    def compute(self, output_size: Array, image_size: Array) -> Array:
        boxes = self.boxes(output_size.tolist(), image_size.tolist())
        if boxes.shape[2] < self.count:
            raise ExecutionError(
                f"the attributes give {boxes.shape[2]} boxes per cell, but the specification counts {self.count}"
            )
        # If the attributes give more boxes than the specification counts, the last ones are dropped.
        total = boxes.shape[0] * boxes.shape[1] * self.count
        variance = np.resize(np.array(self.variance or (0.1,), F), 4)
        return np.stack([boxes.ravel()[: 4 * total], np.tile(variance, total)])

    def boxes(self, grid: Sequence[int], image: Sequence[int]) -> Array:
        """The boxes [height, width, priors, 4] as fractions of the image."""
        raise NotImplementedError


class PriorBox(PriorBase, since=1):
    """The prior boxes of SSD: around each cell of a grid, boxes of several sizes and aspect ratios.

    Specification: PriorBox-1. Inputs: (height, width) of the grid and of the image. Boxes are fractions of the image.
    The centers are `step` pixels apart, the first at `offset` steps; step 0 divides the image evenly.
    """

    min_size = attr.numbers(default=(), rule=attr.positive)
    max_size = attr.numbers(default=(), rule=attr.positive)
    aspect_ratio = attr.numbers(default=(), rule=attr.positive)
    density = attr.numbers(default=(), rule=attr.within(1, 2**31 - 1))
    fixed_ratio = attr.numbers(default=(), rule=attr.positive)
    fixed_size = attr.numbers(default=(), rule=attr.positive)
    clip = attr.boolean(default=False)
    flip = attr.boolean(default=False)
    step = attr.number(default=0.0)
    offset = attr.number(default=0.0, spec_required=True)
    scale_all_sizes = attr.boolean(default=True)

    max_before_ratios = True

    def validate(self) -> None:
        if self.fixed_size and len(self.density) != len(self.fixed_size):
            raise AttributeInvalid(
                f"density must have one value for each fixed_size, found {len(self.density)} and {len(self.fixed_size)}"
            )

    @property
    def count(self) -> int:
        flipped = [1 / ratio for ratio in self.aspect_ratio] if self.flip else []
        ratios = len({1.0, *(round(ratio, 6) for ratio in (*self.aspect_ratio, *flipped))})
        if self.fixed_size:
            count = ratios * len(self.fixed_size)
        elif self.scale_all_sizes:
            count = ratios * len(self.min_size) + len(self.max_size)
        else:
            count = ratios + len(self.min_size) - 1
        each = len(self.fixed_ratio) if self.fixed_ratio else ratios
        return max(count + sum(each * (int(density) ** 2 - 1) for density in self.density), 0)

    def boxes(self, grid: Sequence[int], image: Sequence[int]) -> Array:
        (height, width), (image_height, image_width) = grid, image
        step, unit = F(self.step), F(1)
        if not self.scale_all_sizes:  # sizes and steps are then fractions of the image
            unit = F(image_height)
            step = F(image_height) / F(max(height, 1)) if step == -1 else step * F(image_height)
        if step == 0:
            x = (np.arange(width, dtype=F) + F(0.5)) * (F(image_width) / F(max(width, 1)))
            y = (np.arange(height, dtype=F) + F(0.5)) * (F(image_height) / F(max(height, 1)))
        else:
            x = (F(self.offset) + np.arange(width, dtype=F)) * step
            y = (F(self.offset) + np.arange(height, dtype=F)) * step
        # For each box: the distance of its center from the cell's, and half its size.
        fixed, free = list(self._fixed()), list(self._free(unit))
        shapes = np.array(fixed + free, F).reshape(-1, 4)
        center = np.stack(np.broadcast_arrays(x, y[:, None]), -1)[:, :, None] + shapes[:, :2]
        scale = 1 / np.array([image_width, image_height], F)
        low, high = (center - shapes[:, 2:]) * scale, (center + shapes[:, 2:]) * scale
        low[:, :, : len(fixed)] = np.maximum(low[:, :, : len(fixed)], 0)
        high[:, :, : len(fixed)] = np.minimum(high[:, :, : len(fixed)], 1)
        boxes = np.concatenate([low, high], -1)
        return boxes.clip(0, 1) if self.clip else boxes

    def _ratios(self) -> list[np.float32]:
        """The aspect ratios other than 1, each followed by its inverse with `flip`, without duplicates."""
        ratios, known = [F(1)], [F(1)]  # in the given order, and sorted
        for ratio in map(F, self.aspect_ratio):
            at = bisect(known, ratio)
            if all(abs(ratio - other) >= 1e-6 for other in known[max(at - 1, 0) : at + 1]):
                for new in (ratio, 1 / ratio) if self.flip else (ratio,):
                    ratios.append(new)
                    insort(known, new)
        return [ratio for ratio in ratios[1:] if abs(ratio - 1) >= 1e-6]

    def _fixed(self) -> Iterator[tuple[Any, ...]]:
        """Boxes of `fixed_size`, `density` times along each axis."""
        ratios = [F(ratio) for ratio in self.fixed_ratio] or self._ratios()
        for size, density in zip(map(F, self.fixed_size), map(int, self.density), strict=False):
            shift = int(size / density)
            whole = int(size)  # OpenVINO positions boxes by whole pixels
            centers = [F(shift) / 2 - whole // 2 + k * shift for k in range(density)]
            shapes = [(size / 2 * np.sqrt(ratio), size / 2 / np.sqrt(ratio)) for ratio in ratios]
            if not self.fixed_ratio:
                shapes.insert(0, (F(whole) / 2, F(whole) / 2))
            for shape, y in product(shapes, centers):
                yield from ((x, y, *shape) for x in centers)

    def _free(self, unit: np.float32) -> Iterator[tuple[Any, ...]]:
        """Boxes of `min_size`, of its mean with `max_size`, and of the aspect ratios."""
        sizes = [F(size) * unit for size in self.min_size]
        roots = [np.sqrt(ratio) for ratio in self._ratios()]
        for k, size in enumerate(sizes):
            yield 0, 0, size / 2, size / 2
            larger: list[tuple[Any, ...]] = []
            if k < len(self.max_size):
                mean = np.sqrt(size * F(self.max_size[k])) / 2
                larger = [(0, 0, mean, mean)]
            shaped: list[tuple[Any, ...]] = []
            if self.scale_all_sizes or k == len(sizes) - 1:
                side = size if self.scale_all_sizes else sizes[0]
                shaped = [(0, 0, side / 2 * root, side / 2 / root) for root in roots]
            yield from larger + shaped if self.max_before_ratios else shaped + larger


class PriorBox8(PriorBox, type="PriorBox", since=8):
    """PriorBox with a choice of order: aspect ratios after or before the boxes of `max_size`.

    Specification: PriorBox-8.
    """

    min_max_aspect_ratios_order = attr.boolean(default=True)

    @property
    def max_before_ratios(self) -> bool:
        return self.min_max_aspect_ratios_order


class PriorBoxClustered(PriorBase, since=1):
    """Prior boxes of given widths and heights around each cell of a grid.

    Specification: PriorBoxClustered-1. Inputs: (height, width) of the grid and of the image. Boxes are fractions of the
    image. Without `step`, `step_w` and `step_h` the cells divide the image evenly.
    """

    width = attr.numbers(rule=attr.positive)
    height = attr.numbers(rule=attr.positive)
    clip = attr.boolean(default=True)
    step = attr.number(default=0.0)
    step_w = attr.number(default=0.0)
    step_h = attr.number(default=0.0)
    offset = attr.number(default=0.0, spec_required=True)

    def validate(self) -> None:
        if len(self.width) != len(self.height):
            raise AttributeInvalid(
                f"width and height must have equal lengths, found {len(self.width)} and {len(self.height)}"
            )

    @property
    def count(self) -> int:
        return len(self.width)

    def boxes(self, grid: Sequence[int], image: Sequence[int]) -> Array:
        (rows, columns), (image_height, image_width) = grid, image
        step_x, step_y = F(self.step_w or self.step), F(self.step_h or self.step)
        if step_x == 0 and step_y == 0:
            step_x, step_y = F(image_width) / F(max(columns, 1)), F(image_height) / F(max(rows, 1))
        x = (np.arange(columns, dtype=F) + F(self.offset)) * step_x
        y = (np.arange(rows, dtype=F) + F(self.offset)) * step_y
        center = np.stack(np.broadcast_arrays(x, y[:, None]), -1)[:, :, None]
        half = np.stack([np.array(self.width, F), np.array(self.height, F)], -1) / 2
        size = np.array([image_width, image_height], F)
        boxes = np.concatenate([(center - half) / size, (center + half) / size], -1)
        return boxes.clip(0, 1) if self.clip else boxes


class ExperimentalDetectronPriorGridGenerator(Op, since=6):
    """Copies of the prior boxes around the center of each cell of a feature map.

    Specification: ExperimentalDetectronPriorGridGenerator-6. The grid has the size of `feature_map`, or `h` × `w` if
    given; cells are `stride_x` × `stride_y` pixels, or divide `im_data` evenly. Output: [height, width, priors, 4], or
    one list with `flatten`.
    """

    flatten = attr.boolean(default=False, spec_required=True)
    h = attr.integer(default=0, rule=attr.non_negative)
    w = attr.integer(default=0, rule=attr.non_negative)
    stride_x = attr.number(default=0.0, rule=attr.non_negative)
    stride_y = attr.number(default=0.0, rule=attr.non_negative)

    def infer(self, priors: TensorType, feature_map: TensorType, im_data: TensorType) -> TensorType:
        element = require_floats(priors=priors, feature_map=feature_map, im_data=im_data)
        require_shape("priors", priors, None, 4)
        require_shape("feature_map", feature_map, None, None, None, None)
        require_shape("im_data", im_data, None, None, None, None)
        agreed("the batches of feature_map and im_data", dim_of(feature_map, 0), dim_of(im_data, 0))
        grid = dim_of(feature_map, 2), dim_of(feature_map, 3)
        for name, cells, dim in zip("hw", (self.h, self.w), grid, strict=True):
            if cells and not dim.contains(cells):
                raise ShapeMismatch(f"{name} is {cells}, but feature_map has {dim} cells along that axis")
        count = dim_of(priors, 0)
        if not self.flatten:
            return TensorType(element, Shape(*grid, count, 4))
        known = priors.rank is not None and feature_map.rank is not None
        return TensorType(element, Shape(grid[0] * grid[1] * count if known else ANY, 4))

    def compute(self, priors: Array, feature_map: Array, im_data: Array) -> Array:
        height, width = feature_map.shape[2:]
        step_y = F(self.stride_y or im_data.shape[2] / max(height, 1))
        step_x = F(self.stride_x or im_data.shape[3] / max(width, 1))
        x = step_x * (np.arange(width, dtype=F) + F(0.5))
        y = step_y * (np.arange(height, dtype=F) + F(0.5))
        center = np.stack(np.broadcast_arrays(x, y[:, None]), -1).astype(priors.dtype)
        boxes = priors + np.concatenate([center, center], -1)[:, :, None]
        return boxes.reshape(-1, 4) if self.flatten else boxes

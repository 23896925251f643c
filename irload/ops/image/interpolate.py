"""Interpolate, in three versions: resizing of any axes, with padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.element import bf16, f16, f32, f64, i8, i32, i64, u8, u32, u64
from irload.core.op import Op
from irload.core.scratch import require_scratch
from irload.core.shape import Dim, Shape
from irload.core.size import fixed, is_size
from irload.core.tensor import Array, TensorType, length_of
from irload.errors import ShapeMismatch, TypeMismatch
from irload.ops.image.resize import Resized, Sampling, resize

COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")
MODES = ("nearest", "linear", "linear_onnx", "cubic")

_DATA = (f32, f16, bf16, f64, i8, u8, i32, i64)
_SIZES = (i32, i64, u32, u64)
_SCALES = (f32, f16, bf16)

_EPSILON = np.float32(1e-6)
"""Added to each scale, so that a scale computed as a rounded quotient of two sizes reproduces the size."""


_SHORT, _FACTOR = 1 << 15, 8
"""The longest axis, and the largest factor and divisor, for which `_EPSILON` never adds an element."""


def scaled(size: int, scale: np.float32) -> int:
    """The length of an axis of `size` elements after scaling; f32 arithmetic is part of the definition."""
    if scale == 1:
        return size
    if is_size(size) and size <= _SHORT:
        factors = range(2, _FACTOR + 1)
        factor = next((n for n in factors if scale == n), None)
        divisor = next((n for n in factors if scale == np.float32(1 / n)), None)
        if factor is not None or divisor is not None:
            return size * (factor or 1) // (divisor or 1)
    return int(np.float32(fixed(size)) * (scale + _EPSILON))


def _require(name: str, tensor: TensorType, allowed: Sequence[object]) -> None:
    if not tensor.element.is_dynamic and tensor.element not in allowed:
        raise TypeMismatch(f"{name} must be of type {', '.join(map(str, allowed))}, found {tensor.element}")


def _require_list(name: str, tensor: TensorType) -> None:
    if tensor.rank not in (None, 1):
        raise ShapeMismatch(f"{name} must be a list (rank 1), found {tensor.shape}")


def _check_axes(axes: Sequence[int], rank: int) -> None:
    if any(not 0 <= a < rank for a in axes) or len(set(axes)) != len(axes):
        raise ShapeMismatch(f"axes must be distinct and within 0..{rank - 1}, found {list(axes)}")


class Resizing(Op):
    """Base of all versions: zero padding, then resizing of some axes."""

    antialias = attr.boolean(default=False)
    pads_begin = attr.integers(default=(), rule=attr.non_negative)
    pads_end = attr.integers(default=(), rule=attr.non_negative)

    def pads(self, rank: int) -> list[tuple[int, int]]:
        """Zeros before and after each axis. Short lists are extended with 0, surplus values are ignored."""
        begin, end = ((*p, *(0,) * rank)[:rank] for p in (self.pads_begin, self.pads_end))
        return list(zip(begin, end, strict=True))

    def padded(self, data: Array, pads: Sequence[tuple[int, int]] | None = None) -> Array:
        """`data` padded with zeros, by `pads` if given. Raises LimitExceeded for too many."""
        pads = self.pads(data.ndim) if pads is None else pads
        if not any(map(any, pads)):
            return data
        shape = [begin + n + end for n, (begin, end) in zip(data.shape, pads, strict=True)]
        require_scratch(shape, data.dtype, "data with its pads")
        return np.pad(data, pads)

    def sized(self, padded: Shape, axes: Sequence[int], sizes: TensorType) -> Shape:
        """The shape with the dims of `axes` replaced by the elements of `sizes`, as far as they are known."""
        count = length_of(sizes)
        if count.hi is not None and count.hi < len(axes):
            raise ShapeMismatch(f"there are {len(axes)} axes to resize, but only {count} sizes")
        if any(v < 0 for v in sizes.ints or ()):
            raise ShapeMismatch(f"sizes must not be negative, found {list(sizes.ints or ())}")
        known = sizes.dims
        for k, axis in enumerate(axes):
            padded = padded.with_dim(axis, Dim() if known is None else known[k])
        return padded

    @staticmethod
    def check_sources(padded: Shape, result: Shape) -> Shape:
        """Return `result`, the shape after resizing. Raises ShapeMismatch if it enlarges an empty axis."""
        for axis, (source, target) in enumerate(zip(padded, result, strict=True)):
            if source.hi == 0 and target.lo > 0:
                raise ShapeMismatch(f"axis {axis} is empty and cannot be resized to {target}")
        return result

    def resized(self, data: Array, jobs: Sequence[Resized], how: Sampling) -> Array:
        """Resize `data`, which is already padded."""
        if 0 in (job.out for job in jobs) or not data.size:
            shape = list(data.shape)
            for job in jobs:
                shape[job.axis] = job.out
            return np.zeros(shape, data.dtype)
        return resize(data, jobs, how)


class Interpolate(Resizing, since=1):
    """Resizes the `axes` to the sizes of `target_spatial_shape`.

    Specification: Interpolate-1. Linear means two taps per axis up to rank 4 and a triangle filter at rank 5; mode area
    averages the input elements that an output element covers (without coordinates, so align_corners has no effect).
    Pads enlarge the sampled data but not the axes that are not resized.
    """

    axes = attr.integers(rule=attr.non_negative)
    mode = attr.choice("nearest", "linear", "cubic", "area")
    align_corners = attr.boolean(default=True)

    def infer(self, data: TensorType, target_spatial_shape: TensorType) -> TensorType:
        if not (target_spatial_shape.element.is_integer or target_spatial_shape.element.is_dynamic):
            raise TypeMismatch(f"target_spatial_shape must be of an integer type, found {target_spatial_shape.element}")
        if not data.element.is_numeric:
            raise TypeMismatch(f"data must be of a numeric type, found {data.element}")
        if data.rank is None:
            return data.without_value()
        _check_axes(self.axes, data.rank)
        if self.mode == "linear" and data.rank > 5:
            raise ShapeMismatch(f"mode linear takes data of rank 5 at most, found {data.shape}")
        _require_list("target_spatial_shape", target_spatial_shape)
        result = self.sized(data.shape, self.axes, target_spatial_shape)
        padded = Shape(*(d + (b + e) for d, (b, e) in zip(data.shape, self.pads(data.rank), strict=True)))
        return TensorType(data.element, self.check_sources(padded, result))

    def sampling(self, rank: int) -> Sampling:
        """The attributes in terms of the later versions."""
        mode = self.mode
        if mode == "linear" and rank < 5:
            mode = "linear_onnx"
        coordinates = "asymmetric"
        padded = any((*self.pads_begin, *self.pads_end))
        if self.align_corners:
            coordinates = "align_corners"
        elif self.mode == "linear" and not padded and not (rank == 4 and set(self.axes) == {2, 3}):
            coordinates = "half_pixel"
        return Sampling(mode, coordinates, "simple", self.antialias)

    def geometry(self, padded: Sequence[int], target_spatial_shape: Array) -> tuple[list[Resized], Sampling]:
        """The axes to resize, for data of this padded shape, and the sampling."""
        sizes = target_spatial_shape.tolist()[: len(self.axes)]
        jobs = [Resized(a, padded[a], m) for a, m in zip(self.axes, sizes, strict=True)]
        return jobs, self.sampling(len(padded))

    def compute(self, data: Array, target_spatial_shape: Array) -> Array:
        pads = self.pads(data.ndim)
        for axis, size in enumerate(data.shape):
            if axis not in self.axes:  # its size is unchanged, so zeros before its elements shift the last ones out
                begin = min(pads[axis][0], size)
                data = data[(*(slice(None),) * axis, slice(size - begin))]
                pads[axis] = begin, 0
        padded = self.padded(data, pads)
        return self.resized(padded, *self.geometry(padded.shape, target_spatial_shape))


class Interpolate4(Resizing, type="Interpolate", since=4):
    """Resizes the `axes` (default: all) of the padded data to `sizes` or by `scales` (`shape_calculation_mode`).

    Specification: Interpolate-4. A scaled axis has floor(padded size · scale) elements, and coordinates use the given
    scale rather than the quotient of the sizes. Axes must be distinct and non-negative.
    """

    mode = attr.choice(*MODES, default="nearest", spec_required=True)
    shape_calculation_mode = attr.choice("sizes", "scales", default="sizes", spec_required=True)
    coordinate_transformation_mode = attr.choice(*COORDINATES, default="half_pixel")
    nearest_mode = attr.choice(*NEAREST, default="round_prefer_floor")
    cube_coeff = attr.number(default=-0.75, rule=attr.finite)

    def infer(
        self, data: TensorType, sizes: TensorType, scales: TensorType, axes: TensorType | None = None
    ) -> TensorType:
        _require("sizes", sizes, _SIZES)
        _require("scales", scales, _SCALES)
        by_scale = self.shape_calculation_mode == "scales"
        return self._inferred(data, scales if by_scale else sizes, axes)

    def _inferred(self, data: TensorType, targets: TensorType, axes: TensorType | None) -> TensorType:
        _require("data", data, _DATA)
        _require_list(self.shape_calculation_mode, targets)
        if axes is not None:
            _require("axes", axes, _SIZES)
            _require_list("axes", axes)
        if data.rank is None:
            return data.without_value()
        chosen = tuple(range(data.rank)) if axes is None else axes.ints
        if chosen is None:
            return TensorType(data.element, Shape.any(data.rank))
        _check_axes(chosen, data.rank)
        if "pillow" in self.mode and len(chosen) > 2:
            raise ShapeMismatch(f"mode {self.mode} resizes at most 2 axes, found {list(chosen)}")
        padded = Shape(*(d + (b + e) for d, (b, e) in zip(data.shape, self.pads(data.rank), strict=True)))
        by_scale = self.shape_calculation_mode == "scales"
        result = self._scaled(padded, chosen, targets) if by_scale else self.sized(padded, chosen, targets)
        return TensorType(data.element, self.check_sources(padded, result))

    @staticmethod
    def _scaled(padded: Shape, axes: Sequence[int], scales: TensorType) -> Shape:
        count = length_of(scales)
        if count.hi is not None and count.hi < len(axes):
            raise ShapeMismatch(f"there are {len(axes)} axes to resize, but only {count} scales")
        for k, axis in enumerate(axes):
            if scales.value is None:
                padded = padded.with_dim(axis, Dim())
                continue
            scale = np.float32(scales.value.ravel()[k])
            if not np.isfinite(scale) or scale < 0:
                raise ShapeMismatch(f"scales must be finite and not negative, found {scale}")
            lo, hi = padded[axis].lo, padded[axis].hi
            padded = padded.with_dim(axis, Dim(scaled(lo, scale), None if hi is None else scaled(hi, scale)))
        return padded

    def compute(self, data: Array, sizes: Array, scales: Array, axes: Array | None = None) -> Array:
        return self._computed(data, scales if self.shape_calculation_mode == "scales" else sizes, axes)

    def geometry(self, padded: Sequence[int], targets: Array, axes: Array | None) -> tuple[list[Resized], Sampling]:
        """The axes to resize, for data of this padded shape, and the sampling."""
        chosen = list(range(len(padded))) if axes is None else axes.tolist()
        if self.shape_calculation_mode == "scales":
            scales = [np.float32(s) for s in targets[: len(chosen)]]
            sizes = [scaled(padded[a], s) for a, s in zip(chosen, scales, strict=True)]
        else:
            sizes = targets.tolist()[: len(chosen)]
            scales = [None] * len(sizes)
        how = Sampling(
            self.mode, self.coordinate_transformation_mode, self.nearest_mode, self.antialias, self.cube_coeff
        )
        return [Resized(a, padded[a], m, s) for a, m, s in zip(chosen, sizes, scales, strict=True)], how

    def _computed(self, data: Array, targets: Array, axes: Array | None) -> Array:
        data = self.padded(data)
        return self.resized(data, *self.geometry(data.shape, targets, axes))


class Interpolate11(Interpolate4, type="Interpolate", since=11):
    """Interpolate with one input for scales or sizes, and with the two modes of the Pillow library.

    Specification: Interpolate-11. The Pillow modes always antialias when they shrink, resize at most two axes (height,
    then width), and ignore the coordinate mode and cube_coeff, which is that of Pillow, -0.5.
    """

    mode = attr.choice(*MODES, "bilinear_pillow", "bicubic_pillow", default="nearest", spec_required=True)

    def infer(self, data: TensorType, scales_or_sizes: TensorType, axes: TensorType | None = None) -> TensorType:
        by_scale = self.shape_calculation_mode == "scales"
        _require("scales_or_sizes", scales_or_sizes, _SCALES if by_scale else _SIZES)
        return self._inferred(data, scales_or_sizes, axes)

    def compute(self, data: Array, scales_or_sizes: Array, axes: Array | None = None) -> Array:
        return self._computed(data, scales_or_sizes, axes)

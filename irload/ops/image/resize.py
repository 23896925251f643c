"""Resizing a tensor along some of its axes, in every mode of Interpolate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.ops.image import taps
from irload.ops.image.taps import F32, Taps
from irload.record import record

TABLES = 64
"""Maximum number of cached tables of taps, one for each axis and its sizes."""
PILLOW = {"bilinear_pillow": 1, "bicubic_pillow": 2}
"""The modes of the Pillow library, and the radii of their filters."""


@record()
class Sampling:
    """How to resize: the attributes of Interpolate-11, to which the attributes of older versions are converted."""

    mode: str
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    antialias: bool = False
    cube_coeff: float = -0.75


@record()
class Resized:
    """One axis to resize: from `size` to `out` elements. `given`: the scale of its coordinates, else their quotient."""

    axis: int
    size: int
    out: int
    given: np.float32 | None = None

    @property
    def scale(self) -> np.float32:
        """The scale of its coordinates; arbitrary for an empty axis."""
        return np.float32(self.out) / np.float32(self.size or 1) if self.given is None else self.given

    def at(self, sampling: Sampling) -> Array:
        """The coordinates in the input."""
        return taps.coordinates(sampling.coordinates, self.size, self.out, self.scale)


def antialiased(axes: Sequence[Resized], how: Sampling) -> Sampling:
    """`how`, with antialias only if it changes the filters: in mode linear if an axis shrinks, then for all axes."""
    return replace(how, antialias=how.antialias and how.mode == "linear" and any(a.scale < 1 for a in axes))


def resize(data: Array, axes: Sequence[Resized], how: Sampling) -> Array:
    """`data` resized along `axes`. Axes of unchanged size are skipped: every mode is the identity on them."""
    moving, how = [a for a in axes if a.size != a.out], antialiased(axes, how)
    if how.mode == "nearest":
        for a in moving:
            data = np.take(data, taps.nearest(how.nearest, a.at(how), a.size, a.scale), a.axis)
        return data
    if how.mode in PILLOW:
        for a in reversed(moving):  # the width first; each pass rounds to the data's type
            data = _settled(mixed(data, a.axis, axis_taps(a, how)), data.dtype)
        return data
    if data.dtype.kind in "iu":
        # Height and width are part of the sum even if unchanged: the last element is added as two halves.
        if how.mode == "linear_onnx":
            moving = [a for a in axes if a in moving or a.axis >= data.ndim - 2]
        return _integers(data, _steps(axes, moving, how), how.mode)
    for axis, tap in _steps(axes, moving, how):
        data = mixed(data, axis, _normalized(tap) if how.mode == "linear" else tap).astype(data.dtype, copy=False)
    return data


def axis_taps(axis: Resized, how: Sampling) -> Taps:
    """The f32 taps of each position along one axis. `how`: as `antialiased` returns it for all axes."""
    if how.mode == "nearest":
        at = taps.nearest(how.nearest, axis.at(how), axis.size, axis.scale)[:, None]
        return Taps(at, np.ones(at.shape, F32))
    if how.mode in PILLOW:
        return taps.pillow(axis.size, axis.out, PILLOW[how.mode])
    ((_, tap),) = _steps([axis], [axis], how)
    return _normalized(tap) if how.mode == "linear" else tap


@record()
class AxisTaps:
    """`axis_taps` as a function of the sizes of an axis before and after. Results are cached and are not changed."""

    axis: int
    given: np.float32 | None
    how: Sampling

    def __call__(self, size: int, out: int) -> Taps:
        return _cached_taps(self, size, out)


@lru_cache(TABLES)
def _cached_taps(taps: AxisTaps, size: int, out: int) -> Taps:
    return axis_taps(Resized(taps.axis, size, out, taps.given), taps.how)


def _steps(axes: Sequence[Resized], moving: Sequence[Resized], how: Sampling) -> list[tuple[int, Taps]]:
    if how.mode == "linear_onnx":
        return [(a.axis, taps.linear_onnx(a.at(how), a.size)) for a in moving]
    if how.mode == "cubic":
        return [(a.axis, taps.cubic(a.at(how), a.size, how.cube_coeff)) for a in moving]
    if how.mode == "area":
        return [(a.axis, taps.area(a.size, a.out)) for a in moving]
    steps = [
        (a.axis, taps.linear(a.at(how), a.size, a.scale, a.scale if how.antialias else F32(1)).trimmed())
        for a in moving
    ]
    if how.antialias and steps:  # a factor that cancels out, except for the rounding of integers
        axis, tap = steps[0]
        steps[0] = axis, Taps(tap.index, tap.weight * np.prod([a.scale for a in axes], dtype=F32))
    return steps


def mixed(data: Array, axis: int, tap: Taps) -> Array:
    """One axis replaced by the weighted sums of its taps, in the wider of both dtypes."""
    column = (-1, *(1,) * (data.ndim - 1 - axis))
    shape = (*data.shape[:axis], tap.index.shape[0], *data.shape[axis + 1 :])
    total = np.zeros(shape, np.result_type(data, tap.weight))
    for index, weight in zip(tap.index.T, tap.weight.T, strict=True):
        total += np.take(data, index, axis) * weight.reshape(column)
    return total


def _normalized(tap: Taps) -> Taps:
    total = tap.weight.sum(axis=1, keepdims=True)
    return Taps(tap.index, np.divide(tap.weight, total, out=np.zeros_like(tap.weight), where=total != 0))


def _integers(data: Array, steps: Sequence[tuple[int, Taps]], mode: str) -> Array:
    """Integer data: all axes in one sum, in the order of the specification, since f32 rounding affects integers.

    Overshoots of mode cubic are clamped to the type, as in the CPU plugin; the reference wraps them.
    """
    shape = list(data.shape)
    for axis, tap in steps:
        shape[axis] = tap.index.shape[0]
    data, steps = _with_long_rows(data, [(axis, tap.packed()) for axis, tap in steps])
    rank, total, weights = data.ndim, np.zeros((), F32), np.zeros((), F32)
    for chosen in product(*(range(tap.index.shape[1]) for _, tap in steps)):
        part, weight = data, np.ones((1,) * rank, F32)
        for (axis, tap), k in zip(steps, chosen, strict=True):
            part = np.take(part, tap.index[:, k], axis)
            weight = weight * tap.weight[:, k].astype(F32).reshape(-1, *(1,) * (rank - 1 - axis))
        total = total + weight * part.astype(F32)
        weights = weights + weight
    if mode in ("linear", "area"):
        total = taps.round_half_away(total / np.where(weights != 0, weights, F32(np.inf)))
    limits, wide = np.iinfo(data.dtype), np.iinfo(np.int64)
    whole = total.astype(np.int64).clip(max(limits.min, wide.min), min(limits.max, wide.max))
    return whole.astype(data.dtype).reshape(shape)


def _with_long_rows(data: Array, steps: list[tuple[int, Taps]]) -> tuple[Array, list[tuple[int, Taps]]]:
    """Merge the axes behind the last resized axis into it: NumPy is slow along short rows, such as three channels."""
    last = max((axis for axis, _ in steps), default=data.ndim - 1)
    inner = math.prod(data.shape[last + 1 :])

    def merged(tap: Taps) -> Taps:
        index = tap.index[:, None] * inner + np.arange(inner)[:, None]
        return Taps(index.reshape(-1, tap.index.shape[1]), np.repeat(tap.weight, inner, 0))

    rows = data.reshape(*data.shape[:last], data.shape[last] * inner)
    return rows, [(axis, merged(tap) if axis == last else tap) for axis, tap in steps]


def _settled(mix: Array, dtype: np.dtype[Any]) -> Array:
    """The stored result of a pass of the Pillow modes: integers are rounded and clamped to their type."""
    if dtype.kind == "f":
        return mix.astype(dtype)
    limits = np.iinfo(dtype)
    return taps.round_half_away(mix).clip(limits.min, limits.max).astype(dtype)

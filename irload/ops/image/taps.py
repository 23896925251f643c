"""The sources of the elements of a resized axis: coordinates in the input, and the taps of each mode."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.record import record

F32 = np.float32


@record()
class Taps:
    """For each position of an output axis, the input positions (`index`) and their `weight`, both [out, k]."""

    index: Array
    weight: Array

    def trimmed(self) -> Taps:
        """Without taps that have weight 0 everywhere."""
        used = self.weight.any(axis=0)
        return Taps(self.index[:, used], self.weight[:, used])

    def packed(self) -> Taps:
        """The taps of each position with weight 0 moved behind the others, then trimmed."""
        order = np.argsort(self.weight == 0, axis=1, kind="stable")
        return Taps(*(np.take_along_axis(taps, order, 1) for taps in (self.index, self.weight))).trimmed()


def coordinates(mode: str, size: int, out: int, scale: np.float32) -> Array:
    """The input coordinate, on an axis of `size`, of each of `out` positions. In f32, whose rounding decides ties."""
    x = np.arange(out, dtype=F32)
    if scale == 1 or out == size:
        return x
    half = F32(0.5)
    if mode == "asymmetric":
        return x / scale
    if mode == "tf_half_pixel_for_nn":
        return (x + half) / scale
    if mode == "align_corners":
        return np.zeros_like(x) if out == 1 else x * F32(size - 1) / F32(out - 1)
    if mode == "pytorch_half_pixel" and out == 1:
        return np.zeros_like(x)
    return (x + half) / scale - half


def round_half_away(x: Array) -> Array:
    """The nearest integers; halves are rounded away from zero. The fraction is exact, and so is its double."""
    whole = np.trunc(x)
    return whole + np.trunc((x - whole) * 2)


def nearest(mode: str, x: Array, size: int, scale: np.float32) -> Array:
    """The input index of each coordinate, rounded as `nearest_mode` specifies."""
    if mode == "floor":
        at = np.floor(x)
    elif mode == "ceil":
        at = np.ceil(x)
    elif mode == "simple":
        at = np.ceil(x) if scale < 1 else np.trunc(x)
    elif mode == "round_prefer_ceil":
        at = round_half_away(x)
    else:
        at = np.where(x == np.trunc(x) + F32(0.5), np.floor(x), round_half_away(x))
    return at.astype(np.int64).clip(0, size - 1)


def linear_onnx(x: Array, size: int) -> Taps:
    """Two taps around the coordinate, which is first clamped to the input."""
    x = x.clip(0, size - 1)
    first = x.astype(np.int64)
    second = np.minimum(first + 1, size - 1)
    weight = np.stack([second - x, x - first], axis=1).astype(F32)
    weight[first == second] = 0.5  # past the last element both taps are equal
    return Taps(np.stack([first, second], axis=1), weight)


def linear(x: Array, size: int, scale: np.float32, stretch: np.float32) -> Taps:
    """A triangle filter around the coordinate, `stretch` times as steep; positions outside the input have weight 0.

    The weights are not normalized: the caller divides by their sum.
    """
    reach = 2 if scale > 1 else int(np.ceil(F32(2) / stretch))
    at = round_half_away(x).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)
    weight = np.maximum(F32(0), F32(1) - np.abs(stretch * (x[:, None] - at.astype(F32))))
    weight[(at < 0) | (at >= size)] = 0
    return Taps(at.clip(0, size - 1), weight)


def cubic(x: Array, size: int, coefficient: float) -> Taps:
    """Four taps of the cubic convolution with `coefficient` a; positions outside the input use the edge element."""
    base = np.floor(x)
    a, s = F32(coefficient), (x - base).astype(F32)
    near, far = s, F32(1) - s
    weight = [
        ((a * (near + 1) - 5 * a) * (near + 1) + 8 * a) * (near + 1) - 4 * a,
        ((a + 2) * near - (a + 3)) * near * near + 1,
        ((a + 2) * far - (a + 3)) * far * far + 1,
        ((a * (far + 1) - 5 * a) * (far + 1) + 8 * a) * (far + 1) - 4 * a,
    ]
    at = base.astype(np.int64)[:, None] + np.arange(-1, 3)
    return Taps(at.clip(0, size - 1), np.stack(weight, axis=1))


def pillow(size: int, out: int, support: float) -> Taps:
    """The taps of the Pillow library, which widens its filter when shrinking; `support` 1 is bilinear, 2 bicubic."""
    scale = size / out
    stretch = max(scale, 1.0)
    centre = (np.arange(out) + 0.5) * scale
    first = np.trunc(centre - support * stretch + 0.5).clip(0).astype(np.int64)
    last = np.trunc(centre + support * stretch + 0.5).clip(None, size).astype(np.int64)
    at = first[:, None] + np.arange(max(int((last - first).max(initial=0)), 1))
    distance = np.abs((at - centre[:, None] + 0.5) * (1 / stretch))
    weight = np.maximum(1 - distance, 0) if support == 1 else _bicubic(distance)
    weight[at >= last[:, None]] = 0
    total = weight.sum(axis=1, keepdims=True)
    return Taps(at.clip(0, size - 1), np.divide(weight, total, out=weight, where=total != 0))


def _bicubic(d: Array) -> Array:
    a = -0.5  # as in Pillow and PyTorch; the files have the default of cube_coeff, -0.75
    inner = ((a + 2) * d - (a + 3)) * d * d + 1
    outer = (((d - 5) * d + 8) * d - 4) * a
    return np.where(d < 1, inner, np.where(d < 2, outer, 0.0))


def area(size: int, out: int) -> Taps:
    """The mean over the input range that an output position covers; partly covered elements have partial weight."""
    edges = np.arange(out + 1) * (size / out)
    low, high = edges[:-1, None], edges[1:, None]
    at = np.floor(low).astype(np.int64) + np.arange(int(np.ceil(size / out)) + 1)
    covered = (np.minimum(high, at + 1) - np.maximum(low, at)).clip(0)
    covered[at >= size] = 0
    return Taps(at.clip(0, size - 1), covered / covered.sum(axis=1, keepdims=True))

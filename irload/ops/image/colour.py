"""Colour conversions between RGB or BGR and the planar formats of video: NV12 and I420 (BT.601, limited range)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from irload.core import attribute as attr
from irload.core.element import ElementType, merge, u8
from irload.core.op import Op
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch

_FROM_RGB = np.array([[0.257, 0.504, 0.098], [-0.148, -0.291, 0.439], [0.439, -0.368, -0.071]], np.float32)
"""Y, U and V from R, G and B, before adding 16, 128 and 128."""
TOGETHER = 1 << 16
"""Number of pixels converted in one step, so that intermediate values remain in the cache."""


def _settled(values: Array, dtype: np.dtype[np.generic]) -> Array:
    """Values clamped to 0..255; integers are rounded, halves to even."""
    values = values.clip(0, 255)
    return (np.rint(values) if dtype.kind in "iu" else values).astype(dtype, copy=False)


def _colour_type(*tensors: TensorType) -> ElementType:
    element = merge(*(t.element for t in tensors))
    if not (element.is_float or element.is_dynamic or element is u8):
        raise TypeMismatch(f"images must be of type u8 or floating-point, found {element}")
    return element


def _plane(name: str, tensor: TensorType, channels: int) -> Shape:
    """The shape [N, H, W, C] of a plane. Raises ShapeMismatch for another rank or number of channels."""
    if tensor.rank is None:
        return Shape.any(4)
    if tensor.rank != 4 or not tensor.shape[3].contains(channels):
        raise ShapeMismatch(f"{name} must have shape [N, H, W, {channels}], found {tensor.shape}")
    return tensor.shape


def _divided(dim: Dim, divisor: int, subject: str) -> Dim:
    """The dim divided by `divisor`. Raises ShapeMismatch if it contains no multiple of it."""
    lo, hi = -(-dim.lo // divisor), None if dim.hi is None else dim.hi // divisor
    if hi is not None and hi < lo:
        raise ShapeMismatch(f"{subject} must be divisible by {divisor}, found {dim}")
    return Dim(lo, hi)


class FromPlanes(Op):
    """Video planes to an image [N, H, W, 3].

    The input is a single plane [N, H·3/2, W, 1], or one input per plane. Height and width must be even.
    """

    reverse: ClassVar[bool] = False
    """True for BGR."""

    def infer_single(self, y: TensorType) -> TensorType:
        """The image's type, from the single plane."""
        n, h, w, _ = _plane("the plane", y, 1)
        return self._image(_colour_type(y), n, _divided(h * 2, 3, "twice the height of the plane"), w)

    def infer_planes(self, y: TensorType, chroma: Sequence[tuple[str, TensorType]], channels: int) -> TensorType:
        """The image's type, from the luma plane and the chroma planes."""
        n, h, w, _ = _plane("y", y, 1)
        halves = Shape.any(4)
        for name, tensor in chroma:
            shape = _plane(name, tensor, channels)
            met = halves.meet(shape)
            if met is None:
                raise ShapeMismatch(f"u {halves} and v {shape} must be of one shape")
            halves = met
        met = Shape(n, h, w).meet(Shape(halves[0], halves[1] * 2, halves[2] * 2))
        if met is None:
            names = " and ".join(name for name, _ in chroma)
            raise ShapeMismatch(f"{names} must have half the height and width of y {y.shape}, found {halves}")
        return self._image(_colour_type(y, *(t for _, t in chroma)), *met)

    @staticmethod
    def _image(element: ElementType, n: Dim, h: Dim, w: Dim) -> TensorType:
        for name, dim in (("height", h), ("width", w)):
            _divided(dim, 2, f"the {name} of the image")
        return TensorType(element, Shape(n, h, w, 3))

    def image(self, y: Array, u: Array, v: Array) -> Array:
        """The image from luma [N, H, W] and chroma [N, H/2, W/2]."""
        n, h, w = y.shape
        pairs = y.reshape(n, h // 2, 2, w)  # two rows have the same chroma
        result = np.empty((*pairs.shape, 3), y.dtype)
        step = max(TOGETHER // max(2 * n * w, 1), 1)
        for part in (slice(k, k + step) for k in range(0, h // 2, step)):
            result[:, part] = self._pixels(pairs[:, part], u[:, part], v[:, part])
        return result.reshape(n, h, w, 3)

    def _pixels(self, y: Array, u: Array, v: Array) -> Array:
        """The pixels of luma [N, pairs, 2, W] and chroma [N, pairs, W/2]."""
        c, d, e = (plane.astype(np.float32) - np.float32(offset) for plane, offset in ((y, 16), (u, 128), (v, 128)))
        d, e = (plane.repeat(2, axis=2)[:, :, None] for plane in (d, e))
        luma = np.float32(1.164) * c
        red = luma + np.float32(1.596) * e
        green = luma - np.float32(0.391) * d - np.float32(0.813) * e
        blue = luma + np.float32(2.018) * d
        colours = [blue, green, red] if self.reverse else [red, green, blue]
        return np.stack([_settled(colour, y.dtype) for colour in colours], axis=-1)


class NV12toRGB(FromPlanes, since=8):
    """NV12 (luma, then interleaved chroma) to RGB. Inputs: one plane, or y [N, H, W, 1] and uv [N, H/2, W/2, 2].

    Specification: NV12toRGB-8.
    """

    def infer(self, y: TensorType, uv: TensorType | None = None) -> TensorType:
        return self.infer_single(y) if uv is None else self.infer_planes(y, [("uv", uv)], 2)

    def compute(self, y: Array, uv: Array | None = None) -> Array:
        if uv is None:
            n, rows, w, _ = y.shape
            h = rows * 2 // 3
            y, uv = y[:, :h], y[:, h:].reshape(n, h // 2, w // 2, 2)
        return self.image(y[..., 0], uv[..., 0], uv[..., 1])


class NV12toBGR(NV12toRGB, since=8):
    """NV12toRGB with the channels in the order blue, green, red. Specification: NV12toBGR-8."""

    reverse = True


class I420toRGB(FromPlanes, since=8):
    """I420 (luma, then u, then v) to RGB. Inputs: one plane, or y [N, H, W, 1] and u and v [N, H/2, W/2, 1].

    Specification: I420toRGB-8.
    """

    def infer(self, y: TensorType, u: TensorType | None = None, v: TensorType | None = None) -> TensorType:
        if u is None:
            return self.infer_single(y)
        if v is None:
            raise ShapeMismatch("takes one plane or three (y, u, v), found 2")
        return self.infer_planes(y, [("u", u), ("v", v)], 1)

    def compute(self, y: Array, u: Array | None = None, v: Array | None = None) -> Array:
        if u is None or v is None:
            n, rows, w, _ = y.shape
            h = rows * 2 // 3
            chroma = y[:, h:].reshape(n, 2, h // 2, w // 2)
            return self.image(y[:, :h, :, 0], chroma[:, 0], chroma[:, 1])
        return self.image(y[..., 0], u[..., 0], v[..., 0])


class I420toBGR(I420toRGB, since=8):
    """I420toRGB with the channels in the order blue, green, red. Specification: I420toBGR-8."""

    reverse = True


class RGBtoNV12(Op, since=17):
    """RGB [N, H, W, 3] to NV12: one plane [N, H·3/2, W, 1], or separate luma and chroma if `single_plane` is false.

    Specification: RGBtoNV12-17. Height and width must be even; the chroma is computed from the mean of 2×2 pixels.
    """

    multiplies = True

    single_plane = attr.boolean(default=True)

    reverse: ClassVar[bool] = False

    def infer(self, image: TensorType) -> TensorType | tuple[TensorType, TensorType]:
        element = _colour_type(image)
        n, h, w, _ = _plane("image", image, 3)
        halves = [_divided(dim, 2, f"the {name} of the image") for name, dim in (("height", h), ("width", w))]
        if self.single_plane:
            return TensorType(element, Shape(n, _divided(h * 3, 2, "the height of the image"), w, 1))
        return TensorType(element, Shape(n, h, w, 1)), TensorType(element, Shape(n, *halves, 2))

    def compute(self, image: Array) -> Array | tuple[Array, Array]:
        n, h, w, _ = image.shape
        rgb = (image[..., ::-1] if self.reverse else image).astype(np.float32)
        y = _settled(rgb @ _FROM_RGB[0] + np.float32(16), image.dtype)
        mean = rgb.reshape(n, h // 2, 2, w // 2, 2, 3).mean(axis=(2, 4))
        uv = _settled(mean @ _FROM_RGB[1:].T + np.float32(128), image.dtype)
        if self.single_plane:
            return np.concatenate([y, uv.reshape(n, h // 2, w)], axis=1)[..., None]
        return y[..., None], uv


class BGRtoNV12(RGBtoNV12, since=17):
    """RGBtoNV12 of an image with its channels in the order blue, green, red. Specification: BGRtoNV12-17."""

    reverse = True

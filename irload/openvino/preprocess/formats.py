"""Colour formats, algorithms of resizing, modes of padding."""

from __future__ import annotations

from dataclasses import dataclass

from irload.core.shape import Dim, Shape
from irload.openvino.enums import Choice
from irload.openvino.errors import OpenVINOError
from irload.openvino.layouts import Layout

__all__ = ["PLANES", "ColorFormat", "PaddingMode", "ResizeAlgorithm", "plane_shapes"]


class ColorFormat(Choice):
    """The meaning of the channels of an image, and its planes."""

    UNDEFINED = 0
    NV12_SINGLE_PLANE = 1
    NV12_TWO_PLANES = 2
    I420_SINGLE_PLANE = 3
    I420_THREE_PLANES = 4
    RGB = 5
    BGR = 6
    GRAY = 7
    RGBX = 8
    BGRX = 9


class ResizeAlgorithm(Choice):
    """The interpolation of resized images."""

    RESIZE_LINEAR = 0
    RESIZE_CUBIC = 1
    RESIZE_NEAREST = 2
    RESIZE_BILINEAR_PILLOW = 3
    RESIZE_BICUBIC_PILLOW = 4


class PaddingMode(Choice):
    """The values of padding."""

    CONSTANT = 0
    REFLECT = 2
    SYMMETRIC = 3


@dataclass(frozen=True, slots=True)
class Planes:
    """How a format stores an image: for each plane the channels and the divisor of height and width.

    `whole`: a single plane with the rows of the image, then half as many rows for the colours.
    """

    planes: tuple[tuple[int, int], ...] = ()
    whole: bool = False


PLANES = {
    ColorFormat.NV12_SINGLE_PLANE: Planes(((1, 1),), whole=True),
    ColorFormat.NV12_TWO_PLANES: Planes(((1, 1), (2, 2))),
    ColorFormat.I420_SINGLE_PLANE: Planes(((1, 1),), whole=True),
    ColorFormat.I420_THREE_PLANES: Planes(((1, 1), (1, 2), (1, 2))),
}
"""The formats that store brightness and colours separately, in layout NHWC."""
CHANNELS = {
    ColorFormat.RGB: 3,
    ColorFormat.BGR: 3,
    ColorFormat.RGBX: 4,
    ColorFormat.BGRX: 4,
    ColorFormat.GRAY: 1,
}
"""The number of channels of the other formats."""


def plane_shapes(color: ColorFormat, shape: Shape, layout: Layout) -> list[Shape]:
    """The shapes of the planes of an image of this shape. Raises for sizes that the format does not allow."""
    if color in CHANNELS and layout.has_name("C") and shape.rank is not None:
        return [shape.with_dim(layout.get_index_by_name("C"), CHANNELS[color])]
    planes = PLANES.get(color)
    if planes is None:
        return [shape]
    if shape.rank != 4:
        raise OpenVINOError(f"an image in {color.name} has 4 axes, found {shape}")
    batch, height, width, _ = shape
    if planes.whole:
        return [Shape(batch, Dim(height.lo * 3 // 2, None if height.hi is None else height.hi * 3 // 2), width, 1)]
    return [Shape(batch, height // by, width // by, channels) for channels, by in planes.planes]

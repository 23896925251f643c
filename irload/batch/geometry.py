"""The steps that fit an image to the size of an input, computed from its size before any pixel is decoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from irload.errors import InputInvalid

Fit = Literal["standard", "fit_to_window", "fit_to_window_letterbox", "crop"]
"""How an image is fitted to a window, by the values of OpenVINO Model API's `resize_type`.

`standard` stretches it. `fit_to_window` scales it in proportion and pads below and on the right,
`fit_to_window_letterbox` pads on all sides. `crop` crops it to the aspect ratio of the window, then scales it.
"""
Size = tuple[int, int]
CropBox = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Steps in order, each optional: crop to `box`, resize, crop to `crop`, paste on a canvas.

    `canvas` holds its size, the position of the image on it, and the padding value. Sizes are (width, height).
    """

    source: Size
    box: CropBox | None = None
    resized: Size | None = None
    crop: CropBox | None = None
    canvas: tuple[Size, Size, int] | None = None

    @property
    def size(self) -> Size:
        """The size of the result."""
        if self.canvas is not None:
            return self.canvas[0]
        if self.crop is not None:
            return self.crop[2] - self.crop[0], self.crop[3] - self.crop[1]
        return self.resized or self.source

    @property
    def most_pixels(self) -> int:
        """The pixels of the largest intermediate image."""
        sizes = [self.resized or self.source, self.size]
        return max(width * height for width, height in sizes)

    def apply(self, image: Any, pil: Any) -> Any:
        """Apply the steps to an image, resizing by bilinear interpolation."""
        if self.resized is not None:
            image = image.resize(self.resized, pil.Resampling.BILINEAR, box=self.box)
        if self.crop is not None:
            image = image.crop(self.crop)
        if self.canvas is not None:
            size, place, value = self.canvas
            canvas = pil.new(image.mode, size, value if image.mode == "L" else (value,) * 3)
            canvas.paste(image, place)
            image = canvas
        return image


def geometry(
    source: Size,
    resize: tuple[int, ...] | None,
    crop: Size | None,
    fit: Fit | None,
    window: Size | None,
    pad_value: int = 0,
) -> Geometry:
    """The steps for an image of size `source`. Raises InputInvalid if it is too small to be cropped.

    `fit` and `window` apply if there is neither `resize` nor `crop`.
    """
    if resize is None and crop is None:
        return Geometry(source) if fit is None or window is None else _fitted(source, fit, window, pad_value)
    resized = None if resize is None else resize if len(resize) == 2 else _shorter(source, resize[0])
    if crop is None:
        return Geometry(source, resized=resized)
    (width, height), (whole_width, whole_height) = crop, resized or source
    if width > whole_width or height > whole_height:
        raise InputInvalid(f"is {whole_width}x{whole_height}, too small to crop {width}x{height} from it")
    left, top = (whole_width - width) // 2, (whole_height - height) // 2
    return Geometry(source, resized=resized, crop=(left, top, left + width, top + height))


def _shorter(size: Size, target: int) -> Size:
    """The size whose shorter side is `target`, in the same proportion."""
    share = target / min(size)
    width, height = (max(target, round(side * share)) for side in size)
    return width, height


def _fitted(source: Size, fit: Fit, window: Size, pad_value: int) -> Geometry:
    if fit == "standard":
        return Geometry(source, resized=window)
    (width, height), (wide, high) = source, window
    if fit == "crop":
        if width * high > height * wide:  # wider than the window
            part = max(height * wide // high, 1)
            box = ((width - part) // 2, 0, (width - part) // 2 + part, height)
        else:
            part = max(width * high // wide, 1)
            box = (0, (height - part) // 2, width, (height - part) // 2 + part)
        return Geometry(source, box=box, resized=window)
    share = min(wide / width, high / height)
    inner = (min(max(round(width * share), 1), wide), min(max(round(height * share), 1), high))
    centred = fit == "fit_to_window_letterbox"
    place = ((wide - inner[0]) // 2, (high - inner[1]) // 2) if centred else (0, 0)
    return Geometry(source, resized=inner, canvas=(window, place, pad_value))

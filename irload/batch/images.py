"""Images as inputs of a model: decoded, resized, cropped, scaled and laid out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from irload.batch.extras import extra
from irload.core.tensor import Array
from irload.errors import InputInvalid, ReadError
from irload.graph import Port

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """What becomes of an image. Sizes are (width, height); `resize` of one number is that of the shorter side."""

    resize: tuple[int, ...] | None = None
    crop: tuple[int, int] | None = None
    layout: Literal["NCHW", "NHWC"] | None = None
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    channels: Literal["rgb", "bgr"] = "rgb"


def load_image(source: Any, port: Port, options: ImageOptions) -> Array:
    """One sample for `port` from the path or stream of an image: (value − mean) / scale, in the layout of the model.

    A model that takes one channel gets grey values. Raises ReadError for what is no image.
    """
    pil = extra("PIL.Image", "images")
    layout = options.layout or guess_layout(port)
    grey = port.partial_shape[1 if layout == "NCHW" else 3].hi == 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pil.DecompressionBombWarning)
            with pil.open(source) as opened:
                image = opened.convert("L" if grey else "RGB")
    except (pil.DecompressionBombWarning, pil.DecompressionBombError) as error:
        raise ReadError(f"is too large an image: {error}") from None
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise ReadError(f"cannot be read as an image: {error}") from None
    values = np.asarray(_sized(image, options, pil))
    values = values[:, :, None] if grey else values
    if options.channels == "bgr":
        values = values[:, :, ::-1]
    if options.mean or options.scale:
        values = _scaled(values.astype(np.float32), options)
    element = port.element_type
    if element.is_float or values.dtype == np.uint8:
        values = values.astype(element.dtype)
    return np.ascontiguousarray(values.transpose(2, 0, 1) if layout == "NCHW" else values)


def guess_layout(port: Port) -> Literal["NCHW", "NHWC"]:
    """The layout that the channels of an input betray. Raises InputInvalid for what takes no images."""
    shape = port.partial_shape
    if shape.rank != 4:
        raise InputInvalid(f"input '{port.any_name}' of shape {shape} takes no images; they need four axes")
    first, last = shape[1].hi, shape[3].hi
    if (first in (1, 3)) == (last in (1, 3)):
        raise InputInvalid(f"the layout of input '{port.any_name}' {shape} is not plain; say --layout NCHW or NHWC")
    return "NCHW" if first in (1, 3) else "NHWC"


def _sized(image: Any, options: ImageOptions, pil: Any) -> Any:
    if options.resize is not None:
        width, height = options.resize if len(options.resize) == 2 else _shorter(image.size, options.resize[0])
        image = image.resize((width, height), pil.Resampling.BILINEAR)
    if options.crop is not None:
        width, height = options.crop
        if width > image.width or height > image.height:
            raise InputInvalid(f"is {image.width}x{image.height}, too small to crop {width}x{height} from it")
        left, top = (image.width - width) // 2, (image.height - height) // 2
        image = image.crop((left, top, left + width, top + height))
    return image


def _shorter(size: tuple[int, int], target: int) -> tuple[int, int]:
    """The size whose shorter side is `target`, the other in proportion."""
    share = target / min(size)
    width, height = (max(target, round(side * share)) for side in size)
    return width, height


def _scaled(values: Array, options: ImageOptions) -> Array:
    for name, numbers in (("mean", options.mean), ("scale", options.scale)):
        if len(numbers) not in (0, 1, values.shape[2]):
            raise InputInvalid(f"--{name} has {len(numbers)} values for {values.shape[2]} channels")
    if options.mean:
        values = values - np.array(options.mean, np.float32)
    return values / np.array(options.scale, np.float32) if options.scale else values

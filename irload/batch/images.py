"""Images as model inputs: decoded, rotated, resized, cropped, normalized and laid out."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np

from irload.batch.extras import extra
from irload.batch.geometry import Fit, Geometry, geometry
from irload.core.tensor import Array
from irload.errors import InputInvalid, IRError, ReadError
from irload.graph import Port
from irload.safety.limits import DEFAULT, Limits
from irload.system.forks import unforked
from irload.wording import counted

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
FORMATS = ("PNG", "JPEG", "BMP", "DIB", "GIF", "TIFF", "WEBP")
"""Formats that Pillow may decode; some of its other formats start programs."""

ORIENTATION = 0x0112
"""The EXIF orientation tag; values from 5 on swap width and height."""


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """Preprocessing of an image. Sizes are (width, height); a single number for `resize` sets the shorter side.

    `fit` scales an image to the input size of the model unless `resize` or `crop` sets the size; `pad_value` fills the
    padding. Raises InputInvalid for a `mean` or a `scale` that is not finite, or a `scale` of 0.
    """

    resize: tuple[int, ...] | None = None
    crop: tuple[int, int] | None = None
    layout: Literal["NCHW", "NHWC"] | None = None
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    channels: Literal["rgb", "bgr"] | None = None
    fit: Fit | None = None
    pad_value: int = 0

    def __post_init__(self) -> None:
        if not np.isfinite(self.mean).all():
            raise InputInvalid(f"--mean {_listed(self.mean)}: each value must be a finite number")
        if not np.isfinite(self.scale).all() or 0 in self.scale:
            raise InputInvalid(f"--scale {_listed(self.scale)}: each divisor must be a nonzero finite number")


def _listed(numbers: tuple[float, ...]) -> str:
    return ",".join(f"{n:g}" for n in numbers)


def load_image(source: IO[bytes], port: Port, options: ImageOptions, limits: Limits = DEFAULT) -> Array:
    """Load one sample for `port` from the stream of an image: (value − mean) / scale, in the layout of the model.

    Values are 0..255 before mean and scale: 16-bit grey values are divided by 257, palettes and CMYK are converted to
    RGB, alpha is dropped, an animation contributes its first frame, and the image is rotated by its EXIF orientation. A
    model with one channel gets grey values. Raises, before any pixel is decoded: ReadError if the stream is not an
    image, LimitExceeded for more pixels than `limits.image_pixels` before or after resizing, InputInvalid for a size
    that the model rejects.
    """
    pil = extra("PIL.Image", "images")
    layout = layout_of(port, options)
    grey = port.partial_shape[1 if layout == "NCHW" else 3].hi == 1
    try:
        with _unwarned(pil), pil.open(source, formats=FORMATS) as opened:
            plan = _geometry(opened, port, layout, options, limits)
            opened.load()
            # Read after loading: Pillow itself rotates TIFF files, then removes the tag.
            image = plan.apply(_turned(_plain(opened, grey, pil), _orientation(opened), pil), pil)
    except (IRError, MemoryError):
        raise
    except pil.UnidentifiedImageError:  # its message has the repr of the stream
        formats = ", ".join(FORMATS)
        raise ReadError(f"cannot be read as an image: its content is in none of the formats {formats}") from None
    except Exception as error:  # Pillow's decoders raise arbitrary exceptions on damaged files
        reason = str(error).split("\n", 1)[0][:200] or type(error).__name__
        raise ReadError(f"cannot be read as an image: {reason}") from None
    values = np.asarray(image)
    values = values[:, :, None] if grey else values
    if options.channels == "bgr":
        values = values[:, :, ::-1]
    if options.mean or options.scale:
        values = _scaled(values.astype(np.float32), options)
    element = port.element_type
    if element.is_float or values.dtype == np.uint8:
        values = values.astype(element.dtype)
    return np.ascontiguousarray(values.transpose(2, 0, 1) if layout == "NCHW" else values)


def layout_of(port: Port, options: ImageOptions) -> Literal["NCHW", "NHWC"]:
    """The given layout, else deduced from the channels. Raises InputInvalid if the input does not accept images."""
    shape = port.partial_shape
    if shape.rank != 4:
        raise InputInvalid(f"input '{port.any_name}' has shape {shape}; images require four axes")
    if options.layout is not None:
        return options.layout
    first, last = shape[1].hi, shape[3].hi
    if (first in (1, 3)) == (last in (1, 3)):
        raise InputInvalid(f"the layout of input '{port.any_name}' {shape} is ambiguous; give --layout nchw or nhwc")
    return "NCHW" if first in (1, 3) else "NHWC"


def require_fit(port: Port, options: ImageOptions) -> None:
    """Raise InputInvalid for options that contradict each other or the input, so that every image would fail."""
    layout, shape = layout_of(port, options), port.partial_shape
    name = f"input '{port.any_name}' {shape}"
    channels = shape[1 if layout == "NCHW" else 3]
    if not (channels.contains(1) or channels.contains(3)):
        raise InputInvalid(f"--layout {layout.lower()}: {name} would have {channels} channels; images have 1 or 3")
    count = 1 if channels.hi == 1 else 3
    for option, numbers in (("--mean", options.mean), ("--scale", options.scale)):
        if len(numbers) not in (0, 1, count):
            raise InputInvalid(f"{option} has {len(numbers)} values, but {name} has {counted(count, 'channel')}")
    resized = options.resize if options.resize is not None and len(options.resize) == 2 else None
    if resized and options.crop and (options.crop[0] > resized[0] or options.crop[1] > resized[1]):
        raise InputInvalid(f"--crop {_by(options.crop)} is larger than --resize {_by(resized)}")
    size = options.crop or resized
    rows, columns = (shape[k] for k in ((2, 3) if layout == "NCHW" else (1, 2)))
    if size and not (columns.contains(size[0]) and rows.contains(size[1])):
        option = "--crop" if options.crop else "--resize"
        raise InputInvalid(f"{option} {_by(size)} does not fit {name}, which takes {columns}x{rows}")


def _by(size: tuple[int, ...]) -> str:
    return "x".join(map(str, size))


_LOCK = threading.RLock()


@contextmanager
def _unwarned(pil: Any) -> Generator[None, None, None]:
    """Suppress Pillow's warnings and its limit on pixels; `limits.image_pixels` replaces the limit."""
    with unforked, _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, pil.MAX_IMAGE_PIXELS = pil.MAX_IMAGE_PIXELS, None
        try:
            yield
        finally:
            pil.MAX_IMAGE_PIXELS = before


def _geometry(image: Any, port: Port, layout: str, options: ImageOptions, limits: Limits) -> Geometry:
    """The steps that fit the image to the model, from its header alone."""
    width, height = image.size
    limits.require("image_pixels", width * height, "has too many pixels")
    if image.format != "TIFF" and _orientation(image) in (5, 6, 7, 8):
        width, height = height, width
    rows, columns = (port.partial_shape[k] for k in ((2, 3) if layout == "NCHW" else (1, 2)))
    window = (columns.lo, rows.lo) if columns.is_static and rows.is_static else None
    plan = geometry((width, height), options.resize, options.crop, options.fit, window, options.pad_value)
    limits.require("image_pixels", plan.most_pixels, "would have too many pixels once resized")
    width, height = plan.size
    if not (columns.contains(width) and rows.contains(height)):
        remedy = "" if window is None else f" (--resize {window[0]}x{window[1]})"
        raise InputInvalid(f"is {width}x{height}; input '{port.any_name}' takes {columns}x{rows}{remedy}")
    limits.require("tensor_bytes", width * height * 3 * 4, "would be too large as a tensor")
    return plan


def _orientation(image: Any) -> int:
    """The EXIF orientation, 1 (upright) if it is missing or unreadable."""
    try:
        return int(image.getexif().get(ORIENTATION, 1))
    except Exception:  # damaged metadata does not prevent decoding
        return 1


def _plain(image: Any, grey: bool, pil: Any) -> Any:
    """The first frame in 8 bits: grey, or red, green and blue."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        wide = np.asarray(image).astype(np.uint32)
        image = pil.fromarray(((wide * 255 + 32767) // 65535).astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise ReadError(f"has values of 32 bits (mode {image.mode}), whose range is unknown; convert the image to .npy")
    return image.convert("L" if grey else "RGB")


def _turned(image: Any, orientation: int, pil: Any) -> Any:
    """The image rotated and mirrored by its EXIF orientation."""
    turns = pil.Transpose
    turn = {
        2: turns.FLIP_LEFT_RIGHT,
        3: turns.ROTATE_180,
        4: turns.FLIP_TOP_BOTTOM,
        5: turns.TRANSPOSE,
        6: turns.ROTATE_270,
        7: turns.TRANSVERSE,
        8: turns.ROTATE_90,
    }.get(orientation)
    return image if turn is None else image.transpose(turn)


def _scaled(values: Array, options: ImageOptions) -> Array:
    for name, numbers in (("mean", options.mean), ("scale", options.scale)):
        if len(numbers) not in (0, 1, values.shape[2]):
            raise InputInvalid(f"--{name} has {len(numbers)} values for {values.shape[2]} channels")
    if options.mean:
        values = values - np.array(options.mean, np.float32)
    return values / np.array(options.scale, np.float32) if options.scale else values

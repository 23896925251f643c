"""Image preprocessing and labels from rt_info/model_info, where OpenVINO Model API stores them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast, get_args

from irload.batch.geometry import Fit
from irload.batch.images import ImageOptions
from irload.errors import InputInvalid

TRUE, FALSE = ("true", "yes", "1", "on"), ("false", "no", "0", "off")


def with_model_info(options: ImageOptions, rt_info: Mapping[str, Any]) -> ImageOptions:
    """The options completed from the model: mean, scale, channel order, resize type.

    Nothing is used if the model declares that the processing is embedded in it. Model API reads images as BGR, so
    `reverse_input_channels` means RGB. Raises InputInvalid for values that cannot be parsed.
    """
    info = _info(rt_info)
    if _flag(info, "embedded_processing"):
        return options
    reverse = _flag(info, "reverse_input_channels")
    fit = info.get("resize_type")
    if fit is not None and fit not in get_args(Fit):
        raise InputInvalid(f"resize_type '{fit}' of the model's model_info is not one of {', '.join(get_args(Fit))}")
    return replace(
        options,
        mean=options.mean or _numbers(info, "mean_values"),
        scale=options.scale or _numbers(info, "scale_values"),
        channels=options.channels or (None if reverse is None else "rgb" if reverse else "bgr"),
        fit=options.fit or cast(Fit | None, fit),
        pad_value=int(_numbers(info, "pad_value")[0]) if "pad_value" in info else options.pad_value,
    )


def labels_of(rt_info: Mapping[str, Any]) -> tuple[str, ...]:
    """The labels in the model's metadata, separated by spaces there; empty if it lists no labels."""
    return tuple(_info(rt_info).get("labels", "").split())


def range_warning(options: ImageOptions) -> str | None:
    """A warning if mean and scale seem to be for pixels of 0..1, since irload's pixels are 0..255; else None."""
    mean = bool(options.mean) and max(options.mean) > 0 and all(-1 <= m <= 1 for m in options.mean)
    scale = bool(options.scale) and all(0 < s <= 1 for s in options.scale)
    if not (mean or scale):
        return None
    given, better = _words(options, 1), _words(options, 255)
    return f"{given}: these values seem meant for pixels of 0..1, but pixels are 0..255; the equivalent is {better}"


def _words(options: ImageOptions, times: int) -> str:
    named = (("mean", options.mean), ("scale", options.scale))
    return " ".join(f"--{name} {','.join(f'{v * times:.6g}' for v in values)}" for name, values in named if values)


def _info(rt_info: Mapping[str, Any]) -> dict[str, str]:
    """The entries of model_info that have a value."""
    section = rt_info.get("model_info")
    entries = section.items() if isinstance(section, dict) else ()
    return {key: value.strip() for key, value in entries if isinstance(value, str) and value.strip()}


def _flag(info: Mapping[str, str], name: str) -> bool | None:
    text = info.get(name, "").lower()
    if text and text not in (*TRUE, *FALSE):
        raise InputInvalid(f"{name} '{text[:40]}' of the model's model_info is neither True nor False")
    return None if not text else text in TRUE


def _numbers(info: Mapping[str, str], name: str) -> tuple[float, ...]:
    text = info.get(name, "")
    try:
        numbers = tuple(float(part) for part in text.replace(",", " ").replace("[", " ").replace("]", " ").split())
    except ValueError:
        numbers = (math.nan,)
    possible = all(math.isfinite(n) and (n or name != "scale_values") for n in numbers)
    if not possible or len(numbers) not in (0, 1, 3):
        raise InputInvalid(f"{name} '{text[:40]}' of the model's model_info must be a list of 1 or 3 numbers")
    if name == "pad_value" and (len(numbers) != 1 or not 0 <= numbers[0] <= 255):
        raise InputInvalid(f"pad_value '{text[:40]}' of the model's model_info is not a number in 0..255")
    return numbers

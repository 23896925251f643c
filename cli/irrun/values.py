"""Values of tensors in JSON and tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irrun.render import plain


def json_value(value: Any) -> float | int | bool | str | None:
    """Convert a NumPy scalar to JSON; f32 and narrower keep their shortest digits. None for NaN and infinities."""
    if isinstance(value, str | bytes):
        return value if isinstance(value, str) else value.decode("utf-8", "replace")
    if isinstance(value, np.bool_ | bool):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    number = float(value)
    if not math.isfinite(number):
        return None
    return number if isinstance(value, np.float64) else float(np.format_float_positional(np.float32(value)))


def json_element(value: Any) -> float | int | bool | str:
    """Convert an element of a tensor to JSON: NaN and infinities to strings, all other values like `json_value`."""
    shown = json_value(value)
    if shown is not None:
        return shown
    number = float(value)
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def value_text(value: Any, digits: int = 5) -> str:
    """Format a JSON value as text."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.{digits}g}" if isinstance(value, float) else plain(value)

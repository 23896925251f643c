"""Scripts that run with OpenVINO's module and with irload's, and their values in a comparable form."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino

import irload.openvino

MODELS = Path(__file__).parents[2] / "models"
DIGITS = MODELS / "digits" / "model.xml"
IMAGE = MODELS / "digits" / "digit_7_0.npy"

Script = Callable[[Any], Iterable[Any]]


def opset(ov: Any, number: int = 13) -> Any:
    """The factories of an opset of one of the two modules."""
    return importlib.import_module(f"{ov.__name__}.opset{number}")


def same(script: Script) -> None:
    """Run a script with both modules, and compare the values that it yields one by one."""
    theirs = [plain(v) for v in script(openvino)]
    ours = [plain(v) for v in script(irload.openvino)]
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert a == b, f"value {k}: irload {a!r:.300}, runtime {b!r:.300}"


def ours(script: Script) -> list[Any]:
    """The values of a script that starts threads: OpenVINO's threads may abort the process of the tests."""
    return [plain(v) for v in script(irload.openvino)]


def failure(action: Callable[[], Any]) -> Any:
    """The kind of error that an action raises, or its result."""
    try:
        return action()
    except RuntimeError:
        return "RuntimeError"
    except Exception as error:
        return type(error).__name__


def plain(value: Any) -> Any:
    """A value as numbers, texts and lists: arrays with rounded numbers, other objects by their repr."""
    if isinstance(value, np.ndarray):
        numbers = np.round(value.astype(np.float64), 4).tolist() if value.dtype.kind == "f" else value.tolist()
        return [value.dtype.str, list(value.shape), numbers]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, map(plain, value)))
    if isinstance(value, Mapping):
        return [(plain(k), plain(v)) for k, v in value.items()]
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return re.sub(r"_\d+\b", "_N", value) if isinstance(value, str) else value
    if isinstance(value, np.generic):
        return plain(value[()].item())
    text = re.sub(r"_\d+\b", "_N", repr(value))
    return re.sub(r"names\[(.*?)\]", lambda m: f"names[{', '.join(sorted(m[1].split(', ')))}]", text)

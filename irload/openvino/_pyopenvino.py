"""`openvino._pyopenvino`: OpenVINO's extension module, whose names libraries and annotations use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__path__: list[str] = []  # `import openvino._pyopenvino.op` requires a package


def __getattr__(name: str) -> Any:
    if name == "util":
        return import_module("irload.openvino.utils")
    return getattr(import_module("irload.openvino"), name)

"""`openvino.runtime`: the names of the top-level module, as scripts for earlier versions import them."""

from __future__ import annotations

from typing import Any

import irload.openvino


def __getattr__(name: str) -> Any:
    return getattr(irload.openvino, name)


def __dir__() -> list[str]:
    return dir(irload.openvino)

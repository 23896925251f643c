"""Imports optional packages when a job requires them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irload.errors import Unsupported

_PACKAGES = {
    "images": "images require Pillow",
    "parquet": ".parquet files require pyarrow",
    "ray": "--engine ray requires Ray",
}
"""The purpose of each extra and its package."""


def extra(module: str, name: str) -> Any:
    """A module of the extra `name`. Raises Unsupported, with the command that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != module.split(".")[0]:
            raise
        raise Unsupported(f"{_PACKAGES[name]}, which is not installed; pip install 'irload[{name}]'") from None

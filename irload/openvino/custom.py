"""Operations written in Python for the runtime's API."""

from __future__ import annotations

from typing import Any

from irload.openvino.errors import unsupported

__all__ = ["register"]


def register(extension: Any) -> None:
    """Register an operation."""
    unsupported(f"the extension {extension!r}", "register an operation of irload (docs/extensions.md)")

"""The switch of the sanitizer: whether plans that are made check themselves. Tests switch it on."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

_state = {"on": os.environ.get("IRLOAD_PLAN_SANITIZER") == "1"}


def is_on() -> bool:
    """True where plans are made with the sanitizer: within `sanitizing()`, and with IRLOAD_PLAN_SANITIZER=1."""
    return _state["on"]


@contextmanager
def sanitizing(on: bool = True) -> Generator[None]:
    """Have plans that are made within this context check themselves, in whatever thread."""
    before, _state["on"] = _state["on"], on
    try:
        yield
    finally:
        _state["on"] = before

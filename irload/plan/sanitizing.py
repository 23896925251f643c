"""Switches the sanitizer on or off: whether new plans check their memory accesses. Only tests turn it on."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

_state = {"on": os.environ.get("IRLOAD_PLAN_SANITIZER") == "1"}


def is_on() -> bool:
    """True if plans are created with the sanitizer: within `sanitizing()`, and with IRLOAD_PLAN_SANITIZER=1."""
    return _state["on"]


@contextmanager
def sanitizing(on: bool = True) -> Generator[None]:
    """Create plans with the sanitizer within this context, in all threads."""
    before, _state["on"] = _state["on"], on
    try:
        yield
    finally:
        _state["on"] = before

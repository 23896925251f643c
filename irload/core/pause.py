"""Disables garbage collection, and delays forks, while graphs and plans are built."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

from irload.system.forks import unforked


@contextmanager
def uncollected() -> Generator[None]:
    """Disable garbage collection: it would take half the time and free nothing, as all new objects stay alive.

    Forks by other threads wait: the child would inherit the disabled collector and the locks of half-imported modules.
    """
    with unforked:
        enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if enabled:
                gc.enable()

"""The back ends of the process, in the order in which steps are offered to them. NumPy's is the last, and takes all."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from irload.plan.backends.base import Backend
from irload.plan.backends.numpy.backend import NumpyBackend

_backends: list[Backend] = [NumpyBackend()]


def backends() -> tuple[Backend, ...]:
    """Those that plans are made with from now on."""
    return tuple(_backends)


def register(backend: Backend) -> None:
    """Offer steps to this back end before all that are registered already. Plans that exist stay as they are."""
    _backends.insert(0, backend)


@contextmanager
def registered(backend: Backend) -> Generator[None]:
    """Have a back end registered within this context."""
    register(backend)
    try:
        yield
    finally:
        _backends.remove(backend)

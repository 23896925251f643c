"""The back ends that plans are made with, in the order in which steps are offered to them. NumPy's takes all."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from irload.core.op import Op
from irload.plan.backends.base import Backend, Options, foremost
from irload.plan.backends.llvm.available import compiled_kernels
from irload.plan.backends.numpy.backend import NumpyBackend

_numpy = NumpyBackend()


def backends(options: Options) -> tuple[Backend, ...]:
    """Those that a plan with these options is made with: registered ones, compiled kernels, NumPy.

    Raises InputInvalid for options that this machine cannot meet.
    """
    compiled = compiled_kernels(options.jit, options.precision, precise=options.precise)
    return (*foremost, *([] if compiled is None else [compiled]), _numpy)


def operation(op: Op, offered: Sequence[Backend]) -> Op:
    """The operation in the place of one that no step describes, as these back ends have it."""
    for backend in offered:
        op = backend.operation(op)
    return op


def register(backend: Backend) -> None:
    """Offer steps to this back end before all others. Plans that exist stay as they are."""
    foremost.insert(0, backend)


@contextmanager
def registered(backend: Backend) -> Generator[None]:
    """Have a back end registered within this context."""
    register(backend)
    try:
        yield
    finally:
        foremost.remove(backend)

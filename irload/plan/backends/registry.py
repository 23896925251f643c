"""The back ends in the order in which steps are offered to them. NumPy's is last and accepts all others.

Code outside this package uses back ends through this module and the contracts in base.py and compiled.py only.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from irload.core.op import Op
from irload.errors import Unsupported
from irload.options import Options
from irload.plan.backends.base import Backend, Quantizing, foremost
from irload.plan.backends.compiled import CompiledBackend, Provider
from irload.plan.backends.llvm.available import LlvmProvider
from irload.plan.passes.quantized.products import IntegerProducts

if TYPE_CHECKING:
    from irload.plan.ir.program import Step
    from irload.safety.cache_store import CacheStore

providers: list[Provider] = [LlvmProvider()]
"""The compiled back ends; a plan uses the first that supports this machine."""


def backends(options: Options) -> tuple[Backend, ...]:
    """Return the back ends for a plan with these options: registered ones, compiled kernels, NumPy.

    Raises InputInvalid or Unsupported for options that this machine cannot meet.
    """
    from irload.plan.backends.numpy.backend import NumpyBackend  # on demand: a cached plan does not need it

    compiled = compiled_backend(options)
    return (*foremost, *([] if compiled is None else [compiled]), NumpyBackend())


def compiled_backend(options: Options) -> CompiledBackend | None:
    """Return the compiled back end for these options; None if no compiled back end is available.

    Raises InputInvalid or Unsupported if the options require one.
    """
    refused: Unsupported | None = None
    for provider in providers:
        try:
            backend = provider.backend(options)
        except Unsupported as error:
            refused = refused or error  # a later back end may meet the requirement
            continue
        if backend is not None:
            return backend
    if refused is not None:
        raise refused
    return None


def status() -> str:
    """Describe the compiled back ends, or why none is available. Raises InputInvalid like `backends`."""
    return "; ".join(provider.status() for provider in providers)


def stores() -> list[CacheStore]:
    """Return the files of all back ends in the user's cache."""
    from irload.plan.backends.numpy.backend import NumpyBackend

    return [*NumpyBackend().stores(), *(store for provider in providers for store in provider.stores())]


def operation(op: Op, offered: Sequence[Backend]) -> Op:
    """Return the operation for a Compute step, as modified by these back ends."""
    for backend in offered:
        op = backend.operation(op)
    return op


def supported_steps(offered: Sequence[Backend]) -> Callable[[Step], bool]:
    """Return a function that is true for the steps that any of these back ends supports."""
    return lambda step: any(backend.supports(step) for backend in offered)


def integer_products(offered: Sequence[Backend]) -> IntegerProducts | None:
    """Return the products that back ends compute in integers; None if there are none."""
    quantizing = [backend for backend in offered if isinstance(backend, Quantizing)]
    all_kinds = [backend for backend in quantizing if backend.int8]
    chosen = all_kinds or quantizing
    return IntegerProducts(supported_steps(chosen), exact=not all_kinds) if chosen else None


def stores_bf16(offered: Sequence[Backend]) -> bool:
    """Return True if one of these back ends stores values in bf16."""
    return any(isinstance(backend, CompiledBackend) and backend.precision == "bf16" for backend in offered)


def register(backend: Backend) -> None:
    """Offer steps to this back end before all others. Existing plans do not change."""
    foremost.insert(0, backend)


@contextmanager
def registered(backend: Backend) -> Generator[None]:
    """Register a back end within this context."""
    register(backend)
    try:
        yield
    finally:
        foremost.remove(backend)

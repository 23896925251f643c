"""The compiled kernels of this process. Each is loaded once, from the cache, or compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from irload.plan.backends.llvm.cache import ObjectCache
from irload.plan.backends.llvm.compiler import compile_object, llvmlite_version
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.loader import Code, ObjectInvalid, load
from irload.plan.backends.llvm.target import Target
from irload.safety.limits import checkpoint
from irload.sources import stamp, unchanged
from irload.system.forks import unforked

_FOLDERS = tuple(__name__.split(".")[1:-1]), ("ops",)
"""The folders of irload whose files determine the code: this package, and the geometry of operations."""


class Library:
    """Loaded code by key, released when no executable uses it. Threads compile different kernels in parallel."""

    def __init__(self, cache: ObjectCache | None = None) -> None:
        self.cache = cache or ObjectCache()
        self.compiled = 0
        """The number of kernels that were compiled, since they were not cached."""
        self._lock = Lock()
        """Held while code is looked up or stored."""
        self._loaded: WeakValueDictionary[str, Code] = WeakValueDictionary()
        self._compiling: dict[str, Lock] = {}
        """By key: locks that are held while a kernel is compiled."""

    def code(self, kernel: Kernel, target: Target) -> Code:
        """The code of a kernel. Raises OSError if the system forbids executable memory."""
        key = _key(kernel, target)
        with unforked:  # the locks inside LLVM would stay locked in a forked child
            code = self._found(key)
            if code is None:
                with self._lock:
                    compiling = self._compiling.setdefault(key, Lock())
                try:
                    with compiling:
                        code = self._found(key) or self._compile(key, kernel, target)
                finally:
                    self._compiling.pop(key, None)
            return code

    def found(self, kernel: Kernel, target: Target) -> Code | None:
        """The code of a kernel if it is loaded or cached, else None."""
        with unforked:
            return self._found(_key(kernel, target))

    def _found(self, key: str) -> Code | None:
        with self._lock:
            code = self._loaded.get(key)
            if code is None:
                cached = self.cache.find(key)
                with suppress(ObjectInvalid):  # damaged: compile again
                    if cached is not None:
                        code = self._loaded[key] = load(cached)
            return code

    def _compile(self, key: str, kernel: Kernel, target: Target) -> Code:
        checkpoint()  # a kernel takes some 10 ms, and a plan may have thousands
        compiled = compile_object(kernel.text(target), target, optimize=kernel.optimized)
        with self._lock:
            self.compiled += 1
            if all(unchanged(*folder) for folder in _FOLDERS):
                self.cache.store(key, compiled)
            code = self._loaded[key] = load(compiled)
            return code


def _key(kernel: Kernel, target: Target) -> str:
    return f"{_generator()} {target!r} {kernel!r}"


@cache
def _generator() -> str:
    """The versions of the loaded code generator and of llvmlite, determined without importing llvmlite."""
    return ", ".join([f"llvmlite {llvmlite_version()}", *(stamp(*folder)[:16] for folder in _FOLDERS)])


library = Library()
"""The library of this process."""


@cache
def function(kernel: Kernel, target: Target) -> tuple[Callable[..., Any], Code]:
    """The code of a kernel as a Python callable, and the object that owns its memory."""
    loaded = library.code(kernel, target)
    return kernel_function(loaded.address), loaded


def kernel_function(address: int) -> Callable[..., Any]:
    """Machine code at an address as a Python callable, which releases the GIL."""
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    return ctypes.CFUNCTYPE(None, pointer, number, number, pointer, pointer)(address)

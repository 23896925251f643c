"""The compiled kernels of this process. Each is loaded once, from the cache, or compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
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
    """Loaded code by key. Code is released when no executable uses it."""

    def __init__(self, cache: ObjectCache | None = None) -> None:
        self.cache = cache or ObjectCache()
        self.compiled = 0
        """The number of kernels that were compiled, since they were not cached."""
        self.lock = Lock()
        """Held while code is looked up, compiled or loaded."""
        self._loaded: WeakValueDictionary[str, Code] = WeakValueDictionary()

    def code(self, kernel: Kernel, target: Target) -> Code:
        """The code of a kernel. Raises OSError if the system forbids executable memory."""
        key = f"{_generator()} {target!r} {kernel!r}"
        with unforked, self.lock:  # the locks inside LLVM would stay locked in a forked child
            cached = self._loaded.get(key)
            if cached is None:
                cached = self._loaded[key] = self._load(key, kernel, target)
            return cached

    def _load(self, key: str, kernel: Kernel, target: Target) -> Code:
        cached = self.cache.find(key)
        if cached is not None:
            try:
                return load(cached)
            except ObjectInvalid:
                pass  # damaged: compile again
        checkpoint()  # a kernel takes some 10 ms, and a plan may have thousands
        compiled = compile_object(kernel.text(target), target, optimize=kernel.optimized)
        self.compiled += 1
        if all(unchanged(*folder) for folder in _FOLDERS):
            self.cache.store(key, compiled)
        return load(compiled)


@cache
def _generator() -> str:
    """The versions of the loaded code generator and of llvmlite, determined without importing llvmlite."""
    return ", ".join([f"llvmlite {llvmlite_version()}", *(stamp(*folder)[:16] for folder in _FOLDERS)])


library = Library()
"""The library of this process."""


@cache
def function(kernel: Kernel, target: Target, *, keeps_lock: bool = False) -> tuple[Callable[..., Any], Code]:
    """The code of a kernel as a Python callable, and the object that owns its memory.

    `keeps_lock`: do not release the GIL, which is faster for very short calls.
    """
    loaded = library.code(kernel, target)
    return kernel_function(loaded.address, keeps_lock=keeps_lock), loaded


def kernel_function(address: int, *, keeps_lock: bool = False) -> Callable[..., Any]:
    """Machine code at an address as a Python callable."""
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    prototype = ctypes.PYFUNCTYPE if keeps_lock else ctypes.CFUNCTYPE
    return prototype(None, pointer, number, number, pointer, pointer)(address)

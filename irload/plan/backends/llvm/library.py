"""The kernels of the process: each is loaded once, from the cache or from the compiler."""

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
"""The folders within irload whose files determine code: this package, and the geometry of operations."""


class Library:
    """Code by key. It is released when no executable uses it."""

    def __init__(self, cache: ObjectCache | None = None) -> None:
        self.cache = cache or ObjectCache()
        self.compiled = 0
        """The number of kernels compiled because they were not cached."""
        self.lock = Lock()
        """Held while code is looked up, compiled or loaded."""
        self._loaded: WeakValueDictionary[str, Code] = WeakValueDictionary()

    def code(self, kernel: Kernel, target: Target) -> Code:
        """The code of a kernel. Raises OSError if the system forbids executable memory."""
        key = f"{_generator()} {target!r} {kernel!r}"
        with unforked, self.lock:  # the locks inside LLVM would stay locked in a forked child
            found = self._loaded.get(key)
            if found is None:
                found = self._loaded[key] = self._load(key, kernel, target)
            return found

    def _load(self, key: str, kernel: Kernel, target: Target) -> Code:
        kept = self.cache.find(key)
        if kept is not None:
            try:
                return load(kept)
            except ObjectInvalid:
                pass  # damaged: compile again
        checkpoint()  # a kernel takes some 10 ms, and a plan may have thousands
        made = compile_object(kernel.text(target), target, optimize=kernel.optimized)
        self.compiled += 1
        if all(unchanged(*folder) for folder in _FOLDERS):
            self.cache.keep(key, made)
        return load(made)


@cache
def _generator() -> str:
    """The versions of the code generator, as loaded, and of llvmlite. Nothing is imported."""
    return ", ".join([f"llvmlite {llvmlite_version()}", *(stamp(*folder)[:16] for folder in _FOLDERS)])


library = Library()
"""The library of this process."""


@cache
def function(kernel: Kernel, target: Target, *, keeps_lock: bool = False) -> tuple[Callable[..., Any], Code]:
    """The code of a kernel as a Python callable, and the memory that holds it.

    `keeps_lock`: hold the GIL, which is faster for very short calls.
    """
    code = library.code(kernel, target)
    return kernel_function(code.address, keeps_lock=keeps_lock), code


def kernel_function(address: int, *, keeps_lock: bool = False) -> Callable[..., Any]:
    """Machine code at an address as a Python callable."""
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    prototype = ctypes.PYFUNCTYPE if keeps_lock else ctypes.CFUNCTYPE
    return prototype(None, pointer, number, number, pointer, pointer)(address)

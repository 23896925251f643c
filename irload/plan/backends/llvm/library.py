"""The kernels of the process: each is loaded once, from the cache or from the compiler."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from irload.plan.backends.llvm.cache import ObjectCache
from irload.plan.backends.llvm.compiler import compile_object, llvmlite_version
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.loader import Code, ObjectInvalid, load
from irload.plan.backends.llvm.target import Target
from irload.portable import around_fork


class Library:
    """Code by what it was made from. It lives as long as an executable uses it."""

    def __init__(self, cache: ObjectCache | None = None) -> None:
        self.cache = cache or ObjectCache()
        self.compiled = 0
        """The kernels that no cache held."""
        self.lock = Lock()
        """Held while code is looked up, compiled or loaded; LLVM has locks of its own, which a fork could break."""
        self._loaded: WeakValueDictionary[str, Code] = WeakValueDictionary()

    def code(self, kernel: Kernel, target: Target) -> Code:
        """The code of a kernel. Raises OSError where the system does not let code be made."""
        key = f"{_generator()} {target!r} {kernel!r}"
        with self.lock:
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
                pass  # compiled anew
        made = compile_object(kernel.text(target), target)
        self.compiled += 1
        self.cache.keep(key, made)
        return load(made)


@cache
def _generator() -> str:
    """What writes and compiles code: the files of this package as they are now, and llvmlite. None is imported."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    stamps = [(file.name, status.st_size, status.st_mtime_ns) for file in files for status in [file.stat()]]
    return f"llvmlite {llvmlite_version()}, {hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]}"


library = Library()
"""The one library of the process."""


@cache
def function(kernel: Kernel, target: Target, *, keeps_lock: bool = False) -> tuple[Callable[..., Any], Code]:
    """The code of a kernel as a function of its parameters, and what it lives in.

    `keeps_lock`: other Python threads wait meanwhile, which for what ends at once takes less time.
    """
    code = library.code(kernel, target)
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    prototype = ctypes.PYFUNCTYPE if keeps_lock else ctypes.CFUNCTYPE
    return prototype(None, pointer, number, number, pointer, pointer)(code.address), code


around_fork(library.lock.acquire, library.lock.release)

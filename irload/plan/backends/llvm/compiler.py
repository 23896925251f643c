"""Compiles LLVM IR to object files by llvmlite, which is imported when the first kernel is not in the cache."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import local
from typing import Any

from irload.plan.backends.llvm.target import TRIPLE, Target


@cache
def is_installed() -> bool:
    """True if llvmlite can be imported."""
    return find_spec("llvmlite") is not None


@cache
def llvmlite_version() -> str:
    """The version in llvmlite's _version.py; importing llvmlite or importlib.metadata would take longer."""
    spec = find_spec("llvmlite")
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        with suppress(OSError, UnicodeDecodeError):
            return (Path(folder) / "_version.py").read_text(encoding="utf-8")
    return "unknown"


def compile_object(text: str, target: Target, *, optimize: bool = False) -> bytes:
    """Compile LLVM IR to an ELF object with position-independent code. Threads may compile at the same time.

    `optimize`: run LLVM's passes, which promote variables in memory to registers. Raises RuntimeError for invalid IR,
    which is a bug in a kernel.
    """
    compiler = _compilers.by_target.get(target)
    if compiler is None:
        compiler = _compilers.by_target[target] = Compiler(target)
    return compiler.emitted(compiler.parsed(text, optimize=optimize))


class _Compilers(local):
    """The compilers of each thread."""

    def __init__(self) -> None:
        self.by_target: dict[Target, Compiler] = {}


_compilers = _Compilers()


class Compiler:
    """LLVM for one target, with a separate context: a context serves one thread at a time."""

    def __init__(self, target: Target) -> None:
        self._binding: Any = import_module("llvmlite.binding")
        self._binding.initialize_native_target()
        self._binding.initialize_native_asmprinter()
        self._context = self._binding.create_context()
        self.machine: Any = self._binding.Target.from_triple(TRIPLE).create_target_machine(
            cpu=target.cpu, features=target.features, opt=target.effort, reloc="pic", codemodel="small", jit=False
        )

    def parsed(self, text: str, *, optimize: bool = False) -> Any:
        """The verified module of a text."""
        binding, machine = self._binding, self.machine
        module: Any = binding.parse_assembly(text, self._context)
        module.triple = TRIPLE
        module.data_layout = str(machine.target_data)
        module.verify()
        if optimize:
            builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=1))
            builder.getModulePassManager().run(module, builder)
        return module

    def emitted(self, module: Any) -> bytes:
        """The object of a module: `machine.emit_object(module)` without the lock that llvmlite holds during each call.

        Code generation takes three quarters of the time, and needs no lock for modules of different contexts.
        """
        ffi = self._binding.ffi
        emit = ffi.lib.LLVMPY_TargetMachineEmitToMemory
        with ffi.OutputString() as error:
            buffer = getattr(emit, "_cfn", emit)(self.machine, module, 1, error)
            if not buffer:
                raise RuntimeError(str(error))
        try:
            return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
        finally:
            ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)

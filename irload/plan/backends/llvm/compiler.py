"""Compiles LLVM IR to object files by llvmlite, which is imported when the first kernel is not in the cache."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
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
    """Compile LLVM IR to an ELF object with position-independent code. Not thread-safe: the library holds a lock.

    `optimize`: run LLVM's passes, which promote variables in memory to registers. Raises RuntimeError for invalid IR,
    which is a bug in a kernel.
    """
    binding, machine = _machine(target)
    module: Any = binding.parse_assembly(text)
    module.triple = TRIPLE
    module.data_layout = str(machine.target_data)
    module.verify()
    if optimize:
        builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=1))
        builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


@cache
def _machine(target: Target) -> tuple[Any, Any]:
    binding: Any = import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    llvm: Any = binding.Target.from_triple(TRIPLE)
    return binding, llvm.create_target_machine(
        cpu=target.cpu, features=target.features, opt=target.effort, reloc="pic", codemodel="small", jit=False
    )

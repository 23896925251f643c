"""Whether compiled kernels can be had: llvmlite, a processor they are written for, memory that may be executed."""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING

from irload.errors import InputInvalid
from irload.plan.backends.llvm.compiler import is_installed
from irload.plan.backends.llvm.target import AVX512, VARIABLE, Target, host_target, in_bf16

if TYPE_CHECKING:
    from irload.plan.backends.llvm.backend import LlvmBackend

PRECISIONS = ("f32", "bf16", "auto")
"""What products may be computed in."""


def compiled_kernels(jit: bool | None, precision: str, *, precise: bool = False) -> LlvmBackend | None:
    """The back end of compiled kernels, None where they cannot be had or are not wanted. Raises InputInvalid."""
    target = compiled_target(jit, precision)
    return None if target is None else _backend(target, in_bf16(target, precision, precise=precise))


def compiled_target(jit: bool | None, precision: str) -> Target | None:
    """What kernels are compiled for, None where there are to be none.

    Raises InputInvalid where `jit` is True or `precision` "bf16" and this machine cannot: the message says why.
    """
    if precision not in PRECISIONS:
        raise InputInvalid(f"precision must be one of {', '.join(PRECISIONS)}, found '{precision}'")
    if jit is False:
        if precision == "bf16":
            raise InputInvalid("precision bf16 is that of compiled kernels, which jit=False turns off")
        return None
    target = host_target()
    reason = _missing(target)
    if reason is None and target is not None:
        if precision == "bf16" and not target.bf16:
            needed = "AMX or AVX512_BF16"
            raise InputInvalid(f"precision bf16 needs {needed}, and kernels are for {target.name}; use f32 or auto")
        return target if precision == "f32" else _checked(target)
    if jit or precision == "bf16":
        raise InputInvalid(f"compiled kernels cannot be used: {reason}")
    return None


@cache
def _checked(target: Target) -> Target:
    """The target, or the one below where its tiles do not multiply: products are then those of f32."""
    if not target.tiles:
        return target
    from irload.plan.backends.llvm.tile_check import tiles_multiply

    if tiles_multiply(target):
        return target
    warnings.warn(
        "AMX gave another product than NumPy on this machine, so products are computed in f32: "
        f"please report this; {VARIABLE}={AVX512.name} avoids the check",
        stacklevel=2,
    )
    return AVX512


@cache
def _backend(target: Target, bf16: bool) -> LlvmBackend:
    from irload.plan.backends.llvm.backend import LlvmBackend

    return LlvmBackend(target, bf16=bf16)


@cache
def _missing(target: Target | None) -> str | None:
    """Why there are no compiled kernels for this target."""
    if target is None:
        return f"they are written for x86-64 with AVX2 or AVX-512 on Linux, or {VARIABLE} turns them off"
    if not is_installed():
        return "llvmlite is not installed; pip install 'irload[jit]'"
    from irload.plan.backends.llvm.library import library
    from irload.plan.backends.llvm.runtime import Runner

    try:
        library.code(Runner(), target)
    except OSError as error:
        return f"the system refuses: {error}"
    except (ImportError, RuntimeError) as error:
        return f"llvmlite does not serve: {error}"
    return None

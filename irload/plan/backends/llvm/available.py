"""The availability of compiled kernels, which require llvmlite, a supported processor and executable memory."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from irload.errors import InputInvalid, Unsupported
from irload.plan.backends.llvm.cache import ObjectCache
from irload.plan.backends.llvm.compiler import is_installed
from irload.plan.backends.llvm.target import AVX512, VARIABLE, Target, host_target, in_bf16
from irload.plan.backends.llvm.tuning import LEAST_GAIN
from irload.system.machine import turned_off

if TYPE_CHECKING:
    from irload.options import Options
    from irload.plan.backends.llvm.backend import LlvmBackend
    from irload.safety.cache_store import CacheStore


class LlvmProvider:
    """The entry of this back end in the registry: a `Provider` of plan/backends/compiled.py."""

    def backend(self, options: Options) -> LlvmBackend | None:
        target = compiled_target(options)
        if target is None:
            return None
        precision, precise = options.precision, options.precise
        products = in_bf16(target, precision, precise=precise) and (precision == "bf16" or gains_by_bf16(target))
        # KV caches of decoders grow in place only if no values are stored in bf16
        stored = products and not (precision == "auto" and options.variables)
        return _backend(target, products, stored, precision == "auto" and not precise)

    def status(self) -> str:
        from importlib.metadata import version

        reason, target = unavailable(), host_target()
        if reason is not None or target is None:
            return f"none: {reason}" + (f" (llvmlite {version('llvmlite')})" if is_installed() else "")
        return f"llvmlite {version('llvmlite')}, for {target.name}"

    def stores(self) -> Sequence[CacheStore]:
        from irload.plan.backends.llvm.peaks import peaks_file
        from irload.safety.cache_store import CacheStore

        return [CacheStore("compiled kernels", ObjectCache()), CacheStore("peaks", peaks_file())]


def compiled_target(options: Options) -> Target | None:
    """The target of kernels for these options; None if they exclude compiled kernels or none are available.

    Raises Unsupported, with the reason, if the options require kernels that this machine cannot run. Raises
    InputInvalid if IRLOAD_JIT disables required kernels.
    """
    if options.jit is False:
        return None
    target = host_target()
    bf16 = options.precision == "bf16"
    required_by = "precision bf16" if bf16 else "jit=True (irrun --jit)" if options.jit else None
    off = turned_off(VARIABLE) if target is None else None
    if required_by and off is not None:
        instead = "use f32 or auto" if bf16 else f"omit {required_by}"
        raise InputInvalid(
            f"{required_by} requires compiled kernels, which {off} disables; unset {VARIABLE} or {instead}"
        )
    reason = unavailable()
    if required_by and reason is not None:
        raise Unsupported(f"{required_by} requires compiled kernels, which cannot run here: {reason}")
    if target is None or reason is not None:
        return None
    if bf16 and not target.bf16:
        needed = "a processor with AMX or AVX512_BF16"
        raise Unsupported(f"precision bf16 requires {needed}, and kernels are for {target.name}; use f32 or auto")
    return target if options.precision == "f32" else _checked(target)


def unavailable() -> str | None:
    """The reason why kernels are not available; None if they are.

    Raises InputInvalid for an unknown IRLOAD_JIT, Unsupported for a target that this machine lacks.
    """
    target = host_target()
    off = turned_off(VARIABLE) if target is None else None
    return f"{off} disables them" if off is not None else _missing(target)


def gains_by_bf16(target: Target) -> bool:
    """True if products in bf16 are faster than in f32: always by AMX, otherwise by the measured peaks."""
    if target.tiles or target.emulated or not target.bf16:
        return target.bf16
    from irload.plan.backends.llvm.elements import BF16, F32
    from irload.plan.backends.llvm.peaks import rate

    return rate(target, 1, BF16) >= LEAST_GAIN * rate(target, 1, F32)


@cache
def _checked(target: Target) -> Target:
    """The target, or AVX512 (products in f32) if the tiles of this processor multiply incorrectly."""
    if not target.tiles:
        return target
    from irload.plan.backends.llvm.tile_check import tiles_multiply

    if tiles_multiply(target):
        return target
    warnings.warn(
        "products by AMX differ from NumPy's on this machine, so products are computed in f32: "
        f"please report this; {VARIABLE}={AVX512.name} avoids the check",
        stacklevel=2,
    )
    return AVX512


@cache
def _backend(target: Target, products: bool, stored: bool, int8: bool) -> LlvmBackend:
    from irload.plan.backends.llvm.backend import LlvmBackend

    return LlvmBackend(target, bf16=stored, bf16_weights=products and not stored, int8=int8)


@cache
def _missing(target: Target | None) -> str | None:
    """The reason why there are no compiled kernels for this target; None if there are."""
    if target is None:
        return "they require Linux on x86-64 with AVX2 or AVX-512"
    if not is_installed():
        return "llvmlite is not installed; pip install 'irload[jit]'"
    from irload.plan.backends.llvm.library import library
    from irload.plan.backends.llvm.runtime import Runner

    try:
        library.code(Runner(), target)
    except OSError as error:
        return f"the system refuses: {error}"
    except (ImportError, RuntimeError) as error:
        return f"llvmlite cannot be used: {error}"
    return None

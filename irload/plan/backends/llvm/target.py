"""The targets of kernels, as data: vector width, number of registers, instruction sets, properties of caches."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from contextlib import suppress
from dataclasses import field, replace
from functools import cache
from typing import Any

from irload.errors import InputInvalid, Unsupported
from irload.record import record
from irload.system.machine import OFF
from irload.system.portable import c_library

LINE = 64
"""The bytes of a cache line."""
VARIABLE = "IRLOAD_JIT"
"""The environment variable that names a target, or `off`."""

_SYS_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


def odd_pitch(lines: Any) -> Any:
    """Bytes between rows of `lines` cache lines: an odd number of lines, so that rows share few sets of the cache."""
    return lines // 2 * (2 * LINE) + LINE


@record()
class Target:
    """An instruction set. `lanes`: f32 elements per vector; `flags`: the flags of /proc/cpuinfo that it requires.

    `cpu`: LLVM's name; `features`: additional features for LLVM. `tiles`: bf16 products by AMX; `dots`: by AVX512_BF16;
    `vnni`: products of bytes by AVX512_VNNI or AVX_VNNI; `emulated`: products of bf16 are emulated by other
    instructions, so that tests run on any processor; `effort`: LLVM's level of optimization (0–3), of which 0 compiles
    fastest.

    Properties of processors with the instruction set: the minimum size of the caches of a core in bytes (`l1`, `l2`);
    `ways` of L1; `load`, the cycles by which a load delays multiplications.
    """

    name: str
    lanes: int
    registers: int
    cpu: str
    flags: frozenset[str] = field(repr=False)
    tiles: bool = False
    features: str = ""
    emulated: bool = False
    dots: bool = False
    vnni: bool = False
    effort: int = 3
    l1: int = 32 << 10
    ways: int = 8
    l2: int = 512 << 10
    load: float = 0

    @property
    def bf16(self) -> bool:
        """True if the target multiplies bf16."""
        return self.tiles or self.dots

    @property
    def is_native(self) -> bool:
        """True if one register of the processor holds a vector."""
        return self.bytes <= 32 or "avx512f" in self.flags

    @property
    def cached(self) -> int:
        """Bytes of L2 for data while weights are streamed."""
        return 3 * self.l2 // 8

    @property
    def page(self) -> int:
        """The distance in bytes of addresses that share a set of L1."""
        return self.l1 // self.ways

    @property
    def bytes(self) -> int:
        """Bytes of a vector of f32."""
        return 4 * self.lanes


_V3 = frozenset({"avx2", "fma", "f16c", "bmi1", "bmi2", "movbe", "abm"})
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
AVX2 = Target("avx2", 8, 16, "x86-64-v3", _V3)
AVX512 = Target("avx512", 16, 32, "x86-64-v4", _V4, l2=1 << 20)
AVX_VNNI = replace(AVX2, name="avx_vnni", flags=_V3 | {"avx_vnni"}, features="+avxvnni", vnni=True)
AVX512_VNNI = replace(AVX512, name="avx512_vnni", flags=_V4 | {"avx512_vnni"}, features="+avx512vnni", vnni=True)
AVX512_BF16 = replace(
    AVX512_VNNI,
    name="avx512_bf16",
    flags=AVX512_VNNI.flags | {"avx512_bf16"},
    features="+avx512bf16,+avx512vnni",
    dots=True,
)
_TILES = {"amx_tile", "amx_bf16", "avx512_bf16", "avx512_vnni"}
AMX = replace(
    AVX512,
    name="amx",
    flags=_V4 | _TILES,
    tiles=True,
    vnni=True,
    features="+amx-tile,+amx-bf16,+avx512bf16,+avx512vnni",
    l1=48 << 10,
    ways=12,
    l2=2 << 20,
    load=0.25,
)
"""Intel only. `load`: one load or more per two FMAs lowers the peak from 217 to 186 GFLOP/s (Sapphire Rapids)."""
TARGETS = {target.name: target for target in (AMX, AVX512_BF16, AVX512_VNNI, AVX512, AVX_VNNI, AVX2)}
"""All targets, best first."""


def in_bf16(target: Target, precision: str, *, precise: bool) -> bool:
    """True if products are computed in bf16, and their operands and results may be stored in it."""
    return target.bf16 and (precision == "bf16" or (precision == "auto" and not precise))


TRIPLE = "x86_64-unknown-linux-gnu"
"""The ABI of x86-64 on all systems except Windows."""


def host_target() -> Target | None:
    """The best target of this machine, or the one that IRLOAD_JIT names; None if kernels cannot run.

    Raises InputInvalid if IRLOAD_JIT names an unknown target, Unsupported for one that this machine cannot run.
    """
    return _host_target(os.environ.get(VARIABLE, "").strip().lower())


@cache
def _host_target(setting: str) -> Target | None:
    flags = _flags()
    if setting in OFF:
        return None
    if setting not in ("", "1", "on", "yes", "true", "auto"):
        target = TARGETS.get(setting)
        if target is None:
            raise InputInvalid(f"{VARIABLE} must be off, auto or one of {', '.join(TARGETS)}, found '{setting}'")
        if not target.flags <= flags:
            missing = ", ".join(sorted(target.flags - flags))
            raise Unsupported(f"{VARIABLE} is {setting}, but this processor has no {missing}")
        if not _is_permitted(target):
            raise Unsupported(f"{VARIABLE} is {setting}, but the system does not permit AMX; use avx512_bf16")
        return target
    return next((t for t in TARGETS.values() if t.flags <= flags and _is_permitted(t)), None)


def runnable(target: Target) -> Target:
    """Return the target if this processor has its instructions, else a target that emulates it on this processor.

    The number of lanes and registers, and therefore every layout, remains the same.
    """
    flags = _flags()
    host = next((t for t in TARGETS.values() if t.flags <= flags), None)
    if target.flags <= flags or host is None:
        return target
    return replace(target, cpu=host.cpu, features="", flags=host.flags, vnni=False, emulated=True)


@cache
def tiles_are_permitted() -> bool:
    """Request Linux's permission to use the tile registers of AMX. Return whether it was granted; x86-64 only.

    Forked children inherit it; exec resets it.
    """
    with suppress(OSError, AttributeError):
        syscall = c_library().syscall
        syscall.restype = ctypes.c_long
        numbers = (_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA)
        return syscall(*(ctypes.c_long(n) for n in numbers)) == 0
    return False


def _is_permitted(target: Target) -> bool:
    return not target.tiles or tiles_are_permitted()


def _flags(cpuinfo: str = "/proc/cpuinfo") -> frozenset[str]:
    """The flags in /proc/cpuinfo; empty if unknown."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    with suppress(OSError), open(cpuinfo, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("flags"):
                return frozenset(line.split(":", 1)[1].split())
    return frozenset()

"""What kernels are compiled for, as data: a vector's width, the number of registers, instructions beyond them."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from dataclasses import field, replace
from functools import cache

from irload.errors import InputInvalid
from irload.machine import OFF
from irload.plan.backends.llvm.permission import tiles_are_permitted
from irload.record import record

LINE = 64
"""The bytes of a cache line."""
VARIABLE = "IRLOAD_JIT"
"""The environment variable that names a target to compile for, or `off`."""


@record()
class Target:
    """A set of instructions. `lanes`: f32 elements of a vector; `flags`: what the processor must state to have.

    `cpu`: the name by which LLVM knows the set, and `features` what it has beyond. `tiles`: bf16 products by AMX;
    `dots`: by AVX512_BF16; `emulated`: either by other instructions, for tests on any machine.

    Of the processors that have the set: `cached`, the bytes of the second level of the cache that data may take while
    weights go by, of 512 KB or 1 MB at least; `ways`, the places of a set of the first level; `load`, the cycles of
    multiplications that one load costs.
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
    cached: int = 192 << 10
    ways: int = 8
    load: float = 0

    @property
    def bf16(self) -> bool:
        """True where products can be in bf16."""
        return self.tiles or self.dots

    @property
    def bytes(self) -> int:
        """The bytes of a vector of f32."""
        return 4 * self.lanes


_V3 = frozenset({"avx2", "fma", "f16c", "bmi1", "bmi2", "movbe", "abm"})
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
AVX2 = Target("avx2", 8, 16, "x86-64-v3", _V3)
AVX512 = Target("avx512", 16, 32, "x86-64-v4", _V4, cached=384 << 10)
AVX512_BF16 = replace(AVX512, name="avx512_bf16", flags=_V4 | {"avx512_bf16"}, features="+avx512bf16", dots=True)
_TILES = {"amx_tile", "amx_bf16", "avx512_bf16", "avx512_vnni"}
AMX = replace(
    AVX512,
    name="amx",
    flags=_V4 | _TILES,
    tiles=True,
    features="+amx-tile,+amx-bf16,+avx512bf16,+avx512vnni",
    ways=12,
    load=0.25,
)
"""Only Intel's: a load for each two FMAs or more lowers their peak from 217 to 186 GFLOP/s there (Sapphire Rapids)."""
TARGETS = {target.name: target for target in (AMX, AVX512_BF16, AVX512, AVX2)}
"""The targets there are kernels for, the best first."""


def in_bf16(target: Target, precision: str, *, precise: bool) -> bool:
    """True where products are computed in bf16, and what they take and make may be stored so."""
    return target.bf16 and (precision == "bf16" or (precision == "auto" and not precise))


TRIPLE = "x86_64-unknown-linux-gnu"
"""The ABI of the code: that of x86-64 everywhere but on Windows."""


def host_target() -> Target | None:
    """The best target of this machine, or what IRLOAD_JIT names; None where kernels cannot run.

    Raises InputInvalid where IRLOAD_JIT names a target that does not exist, or that this processor does not have.
    """
    return _host_target(os.environ.get(VARIABLE, "").strip().lower())


@cache
def _host_target(asked: str) -> Target | None:
    flags = _flags()
    if asked in OFF:
        return None
    if asked not in ("", "1", "on", "yes", "true", "auto"):
        target = TARGETS.get(asked)
        if target is None:
            raise InputInvalid(f"{VARIABLE} must be off, auto or one of {', '.join(TARGETS)}, found '{asked}'")
        if not target.flags <= flags:
            missing = ", ".join(sorted(target.flags - flags))
            raise InputInvalid(f"{VARIABLE} asks for {asked}, but this processor has no {missing}")
        if not _is_permitted(target):
            raise InputInvalid(f"{VARIABLE} asks for {asked}, but the system does not permit AMX; use avx512_bf16")
        return target
    return next((t for t in TARGETS.values() if t.flags <= flags and _is_permitted(t)), None)


def _is_permitted(target: Target) -> bool:
    return not target.tiles or tiles_are_permitted()


def _flags(cpuinfo: str = "/proc/cpuinfo") -> frozenset[str]:
    """What the processor states to have, by Linux's names; nothing where that is not known."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    with suppress(OSError), open(cpuinfo, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("flags"):
                return frozenset(line.split(":", 1)[1].split())
    return frozenset()

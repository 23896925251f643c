"""Linux's permission to use the tile registers of AMX, which a process must request.

Forked children inherit it; exec resets it.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

from irload.system.portable import c_library

_SYS_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


@cache
def tiles_are_permitted() -> bool:
    """Request the permission and return whether it was granted. Only for Linux on x86-64."""
    with suppress(OSError, AttributeError):
        syscall = c_library().syscall
        syscall.restype = ctypes.c_long
        numbers = (_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA)
        return syscall(*(ctypes.c_long(n) for n in numbers)) == 0
    return False

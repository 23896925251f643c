"""The system's permission to use the tile registers of AMX, which Linux gives a process that asks for it.

Forked children inherit it; a program that is executed asks anew.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

_SYS_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


@cache
def tiles_are_permitted() -> bool:
    """Ask for permission, and say whether it was given. Only for Linux on x86-64."""
    with suppress(OSError, AttributeError):
        syscall = ctypes.CDLL(None, use_errno=True).syscall
        syscall.restype = ctypes.c_long
        numbers = (_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA)
        return syscall(*(ctypes.c_long(n) for n in numbers)) == 0
    return False

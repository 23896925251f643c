"""Loads object files into memory. All relocations are relative to the instruction pointer.

Pages are written first, then protected as executable and read-only.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from irload.plan.backends.llvm.elf import EXECUTABLE, LARGEST, PROGBITS, RELA, ElfRelocation, ObjectFile, ObjectInvalid
from irload.system.portable import anonymous_pages, c_library

__all__ = ["Code", "ObjectInvalid", "load"]

_PC32, _PLT32 = 2, 4
_READ_EXECUTE = 5


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Code:
    """A function in memory, which stays mapped while this object exists, and its object file."""

    address: int
    pages: mmap.mmap
    data: bytes


def load(data: bytes, entry: str = "kernel") -> Code:
    """Load an object and return one of its functions.

    Raises ObjectInvalid, or OSError if the system forbids executable memory.
    """
    file = ObjectFile(data)
    start = _entry(file, entry)
    placed, total = _placed(file)
    pages = anonymous_pages(total)
    for k, place in placed.items():
        section = file.sections[k]
        if section.kind == PROGBITS:
            pages[place : place + section.size] = file.contents(section)
    for section in file.sections:
        if section.kind == RELA and section.info in placed:
            is_code = bool(file.sections[section.info].flags & EXECUTABLE)
            for relocation in file.relocations(section):
                _relocate(relocation, section.info, placed, pages, is_code=is_code)
    base = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    _protect(base, total)
    return Code(base + placed[start[0]] + start[1], pages, data)


def _entry(file: ObjectFile, name: str) -> tuple[int, int]:
    """The section of a function and its offset there."""
    for symbol in file.symbols:
        if symbol.name == name and symbol.section < len(file.sections):
            section = file.sections[symbol.section]
            if section.is_placed and section.flags & EXECUTABLE and symbol.value < section.size:
                return symbol.section, symbol.value
    raise ObjectInvalid(f"it has no function {name}")


def _placed(file: ObjectFile) -> tuple[dict[int, int], int]:
    """The offset of each loaded section, and the total size."""
    placed: dict[int, int] = {}
    end = 0
    for k, section in enumerate(file.sections):
        if section.is_placed:
            placed[k] = -(-end // section.alignment) * section.alignment
            end = placed[k] + section.size
    if end > LARGEST:
        raise ObjectInvalid(f"it takes {end:,} bytes of memory")
    return placed, end


def _relocate(
    relocation: ElfRelocation, section: int, placed: Mapping[int, int], pages: mmap.mmap, *, is_code: bool
) -> None:
    symbol = relocation.symbol
    if relocation.kind in (_PC32, _PLT32) and symbol.section in placed:
        place = placed[section] + relocation.offset
        distance = placed[symbol.section] + symbol.value + relocation.addend - place
        if not -(1 << 31) <= distance < 1 << 31:
            raise ObjectInvalid("a relocation is out of reach")
        struct.pack_into("<i", pages, place, distance)
    elif is_code:  # tables for debuggers and unwinding are not needed
        raise ObjectInvalid(f"relocation {relocation.kind} by '{symbol.name}' is not supported")


def _protect(base: int, size: int) -> None:
    """Make the pages executable and read-only."""
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    if c_library().mprotect(ctypes.c_void_p(base), ctypes.c_size_t(pages), _READ_EXECUTE) != 0:
        raise OSError(ctypes.get_errno(), "the system does not allow executable memory")

"""Objects: damaged ones are rejected, and no page is ever writable and executable."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path

import numpy as np
import pytest

from irload.plan.backends.llvm import loader
from irload.plan.backends.llvm.elf import PROGBITS, RELA, ObjectFile
from irload.plan.backends.llvm.kernel import address
from irload.plan.backends.llvm.loader import Code, ObjectInvalid, load
from tests.plan.llvm.tiny import Fill, compiled

pytest.importorskip("llvmlite")

SECTION, SYMBOL, RELOCATION = 64, 24, 24
TABLE_AT = 0x28
"""The position of the header's field with the offset of the section table."""


@pytest.fixture(scope="module")
def data() -> bytes:
    return compiled(Fill(7, table=True))


def run(code: Code, units: int) -> np.ndarray:
    out = np.zeros(units, np.float32)
    pointers = np.array([address(out)], np.uint64)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(code.address)
    function(pointers.ctypes.data, 0, units, 0)
    return out


def test_an_object_runs(data: bytes) -> None:
    file = ObjectFile(data)
    assert any(s.kind == RELA for s in file.sections), "the table is reached by a relocation"
    assert run(load(data), 8).tolist() == [7] * 8


def test_a_truncated_object_is_rejected(data: bytes) -> None:
    (table,) = struct.unpack_from("<Q", data, TABLE_AT)
    assert table + SECTION < len(data), "the sections are listed at the end"
    for length in range(len(data)):
        with pytest.raises(ObjectInvalid):
            load(data[:length])


def tables(data: bytes) -> list[int]:
    """The offsets of everything except code: header, section table, symbols, names and relocations."""
    file = ObjectFile(data)
    (start,) = struct.unpack_from("<Q", data, TABLE_AT)
    entries = [*range(SECTION), *range(start, start + SECTION * len(file.sections))]
    for section in file.sections:
        if section.kind != PROGBITS and not section.is_placed:
            entries += range(section.offset, min(section.offset + section.size, len(data)))
    return sorted(set(entries))


def test_changed_bytes_are_rejected_or_loaded_equally(data: bytes) -> None:
    """Nothing is run: the target of a changed addend is not checked here, because the cache has digests."""
    refused = 0
    for at in tables(data):
        for flip in (0x01, 0x80, 0xFF):
            changed = bytearray(data)
            changed[at] ^= flip
            try:
                code = load(bytes(changed))
            except ObjectInvalid:
                refused += 1
            else:
                start = address_of(code)
                assert start <= code.address < start + len(code.pages)
    assert refused > 500


def address_of(code: Code) -> int:
    """The start of its pages. In /proc/self/maps they may be merged with the pages of other code."""
    return address(np.frombuffer(code.pages, np.uint8))


@pytest.mark.parametrize(
    ("what", "field", "number"),
    [
        ("a section beyond the file", 24, 1 << 40),
        ("a size beyond the file", 32, 1 << 40),
        ("a size that wraps", 32, (1 << 64) - 1),
        ("an alignment of a gigabyte", 48, 1 << 30),
        ("an alignment that is no power of two", 48, 48),
    ],
)
def test_sections_that_cannot_be(data: bytes, what: str, field: int, number: int) -> None:
    file = ObjectFile(data)
    (start,) = struct.unpack_from("<Q", data, TABLE_AT)
    code = next(k for k, s in enumerate(file.sections) if s.is_placed and s.size)
    changed = bytearray(data)
    struct.pack_into("<Q", changed, start + SECTION * code + field, number)
    with pytest.raises(ObjectInvalid):
        load(bytes(changed))


@pytest.mark.parametrize("offset", [1 << 20, (1 << 64) - 64])
def test_relocations_outside_of_their_section(data: bytes, offset: int) -> None:
    section = relocations_of_code(ObjectFile(data))
    changed = bytearray(data)
    struct.pack_into("<Q", changed, section, offset)
    with pytest.raises(ObjectInvalid, match="outside"):
        load(bytes(changed))


def test_relocations_to_undefined_symbols_are_rejected(data: bytes) -> None:
    file = ObjectFile(data)
    at = relocations_of_code(file) + 8
    (info,) = struct.unpack_from("<Q", data, at)
    undefined = next(k for k, s in enumerate(file.symbols) if s.section == 0)
    for changed_info, reason in ((info & 0xFFFFFFFF | undefined << 32, "not supported"), (info | 9999 << 32, "symbol")):
        changed = bytearray(data)
        struct.pack_into("<Q", changed, at, changed_info)
        with pytest.raises(ObjectInvalid, match=reason):
            load(bytes(changed))


def test_an_entry_that_is_no_code(data: bytes) -> None:
    with pytest.raises(ObjectInvalid, match="no function missing"):
        load(data, "missing")
    with pytest.raises(ObjectInvalid, match="no function numbers"):
        load(data, "numbers")


def relocations_of_code(file: ObjectFile) -> int:
    """The offset of the first relocation of code."""
    return next(s.offset for s in file.sections if s.kind == RELA and file.sections[s.info].flags & 4)


def test_pages_are_never_writable_and_executable(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def protections() -> dict[int, str]:
        lines = Path("/proc/self/maps").read_text(encoding="ascii").splitlines()
        return {int(line.split("-")[0], 16): line.split()[1] for line in lines}

    def at(place: int, how: dict[int, str]) -> str:
        """The protection of a page, whose entry may include neighbours with the same protection."""
        return how[max(start for start in how if start <= place)]

    def both() -> list[int]:
        """Pages that are writable and executable: ctypes has a private one."""
        return [start for start, how in protections().items() if "w" in how and "x" in how]

    before_loading = both()
    seen: list[str] = []
    protect = loader._protect

    def watched(base: int, size: int) -> None:
        seen.append(at(base, protections()))
        protect(base, size)

    monkeypatch.setattr(loader, "_protect", watched)
    code = load(data)
    assert seen[0].startswith("rw-")
    assert at(address_of(code), protections()).startswith("r-x")
    assert both() == before_loading


def test_a_system_that_refuses(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def mprotect(self, *_: object) -> int:
            return -1

    monkeypatch.setattr(loader, "c_library", Refusing)
    with pytest.raises(OSError, match="executable memory"):
        load(data)

"""Parses ELF object files for x86-64: sections, symbols, relocations. Every offset and size is checked before use."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from irload.record import record

PROGBITS, SYMTAB, RELA, NOBITS = 1, 2, 4, 8
"""Types of sections: contents in the file, symbols, relocations, zeros."""
ALLOC, EXECUTABLE = 2, 4
"""Flags of sections: loaded at run time, code."""
LARGEST = 64 << 20
"""The maximum size of code and constants in bytes."""
PAGE = 4096
"""The alignment, in bytes, of memory from the system."""

_FILE = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_MAGIC = b"\x7fELF\x02\x01"
_RELOCATABLE, _X86_64 = 1, 62


class ObjectInvalid(ValueError):
    """An object file that is damaged or has unsupported contents."""


@record()
class Section:
    """A section. `link`, `info`: indices of related sections, with a meaning that depends on `kind`."""

    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int

    @property
    def is_placed(self) -> bool:
        """True for sections that are loaded."""
        return bool(self.flags & ALLOC) and self.kind in (PROGBITS, NOBITS)


@record()
class ElfSymbol:
    """A symbol: its name and its offset (`value`) in a section."""

    name: str
    section: int
    value: int


@record()
class ElfRelocation:
    """A relocation: the value to write at `offset` of a section, computed from a symbol and an addend by `kind`."""

    offset: int
    kind: int
    symbol: ElfSymbol
    addend: int


class ObjectFile:
    """An object file. Raises ObjectInvalid for inconsistent tables and for offsets beyond the file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        try:
            self.sections = self._sections()
            self.symbols = self._symbols()
        except (struct.error, UnicodeDecodeError) as error:
            raise ObjectInvalid(f"its tables are damaged: {error}") from None

    def contents(self, section: Section) -> bytes:
        """The bytes of a section."""
        _require(section.offset + section.size <= len(self.data), "a section reaches beyond the file")
        return self.data[section.offset : section.offset + section.size]

    def relocations(self, section: Section) -> Iterator[ElfRelocation]:
        """The relocations in a section, each within the section that it modifies."""
        _require(section.size % _RELOCATION.size == 0, "relocations of a broken size")
        for offset, info, addend in _RELOCATION.iter_unpack(self.contents(section)):
            _require(info >> 32 < len(self.symbols), "a relocation without a symbol")
            _require(offset + 4 <= self.sections[section.info].size, "a relocation outside of its section")
            yield ElfRelocation(offset, info & 0xFFFFFFFF, self.symbols[info >> 32], addend)

    def _sections(self) -> list[Section]:
        magic, kind, machine, _, _, _, table, _, _, _, _, size, count, _ = _FILE.unpack_from(self.data)
        _require(magic.startswith(_MAGIC), "it is not a 64-bit ELF file")
        _require((kind, machine, size) == (_RELOCATABLE, _X86_64, _SECTION.size), "it is not an object file for x86-64")
        _require(table + count * size <= len(self.data), "the table of sections reaches beyond the file")
        sections: list[Section] = []
        for header in _SECTION.iter_unpack(self.data[table : table + count * size]):
            _, kind, flags, _, offset, length, link, info, alignment, _ = header
            sections.append(Section(kind, flags, offset, length, link, info, max(alignment, 1)))
        for section in sections:
            if section.kind != NOBITS:
                self.contents(section)
            if section.is_placed:
                _require(section.size <= LARGEST, "a section is too large")
                _require(PAGE % section.alignment == 0, "a section whose alignment is not supported")
            if section.kind == RELA:
                _require(section.info < len(sections), "relocations without a section")
        return sections

    def _symbols(self) -> list[ElfSymbol]:
        table = next((section for section in self.sections if section.kind == SYMTAB), None)
        if table is None:
            raise ObjectInvalid("it has no symbols")
        _require(table.link < len(self.sections) and table.size % _SYMBOL.size == 0, "a broken table of symbols")
        names = self.contents(self.sections[table.link])
        symbols: list[ElfSymbol] = []
        for name, _, _, section, value, _ in _SYMBOL.iter_unpack(self.contents(table)):
            end = names.find(b"\0", name)
            _require(end >= 0, "a symbol without a name")
            if section < len(self.sections):
                _require(value <= self.sections[section].size, "a symbol outside of its section")
            symbols.append(ElfSymbol(names[name:end].decode("ascii"), section, value))
        return symbols


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ObjectInvalid(otherwise)

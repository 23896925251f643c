"""The .bin file in the making: constants appended once each, at aligned offsets."""

from __future__ import annotations

import hashlib
from typing import BinaryIO

ALIGNMENT = 64


class Blob:
    """Collects the bytes of constants. Equal bytes share one place, as the runtime's writer has it."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[tuple[int, bytes]] = []
        self._known: dict[bytes, int] = {}

    def add(self, raw: bytes) -> tuple[int, int]:
        """(offset, size) of these bytes. An empty tensor takes one byte of filler, as the format wants."""
        raw = raw or b"\0"
        digest = hashlib.blake2b(raw, digest_size=24).digest() + len(raw).to_bytes(8, "little")
        offset = self._known.get(digest)
        if offset is None:
            offset = -(-self.size // ALIGNMENT) * ALIGNMENT if len(raw) >= ALIGNMENT else -(-self.size // 8) * 8
            self._known[digest] = offset
            self._parts.append((offset, raw))
            self.size = offset + len(raw)
        return offset, len(raw)

    def write(self, stream: BinaryIO) -> None:
        """Write everything, gaps filled with zeros."""
        at = 0
        for offset, raw in self._parts:
            stream.write(b"\0" * (offset - at))
            stream.write(raw)
            at = offset + len(raw)

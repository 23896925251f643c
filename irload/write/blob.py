"""Builds a .bin file: constants are appended once each, at aligned offsets."""

from __future__ import annotations

import hashlib
import sys
from typing import BinaryIO

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.packing import pack
from irload.core.tensor import Array

Bytes = bytes | memoryview

ALIGNMENT = 64


class Blob:
    """Collects the bytes of constants. Equal bytes are stored once, as by OpenVINO's writer."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[tuple[int, Bytes]] = []
        self._known: dict[bytes, int] = {}

    def add(self, values: Array, element: ElementType) -> tuple[int, int]:
        """Returns (offset, size) of a constant. An empty one takes one byte of padding, as the format requires."""
        raw = _packed(values, element) if values.size else b"\0"
        digest = hashlib.blake2b(raw, digest_size=24).digest() + len(raw).to_bytes(8, "little")
        offset = self._known.get(digest)
        if offset is None:
            offset = -(-self.size // ALIGNMENT) * ALIGNMENT if len(raw) >= ALIGNMENT else -(-self.size // 8) * 8
            self._known[digest] = offset
            self._parts.append((offset, raw))
            self.size = offset + len(raw)
        return offset, len(raw)

    def write(self, stream: BinaryIO) -> None:
        """Write everything; gaps are zeros."""
        at = 0
        for offset, raw in self._parts:
            stream.write(b"\0" * (offset - at))
            stream.write(raw)
            at = offset + len(raw)


def _packed(values: Array, element: ElementType) -> Bytes:
    """The bytes of a constant; a view if the array has the layout of the file, otherwise a copy."""
    if element is et.string or element.bits < 8 or sys.byteorder != "little":
        return pack(values, element)
    return np.ascontiguousarray(values, element.dtype).reshape(-1).view(np.uint8).data

"""The file of one plan: a head under its digest, then the constants under a checksum.

The head is a line of JSON, then the arrays of the image and its objects of code. The checksum finds what a disk loses;
SHA-256, which finds what somebody changes, would take as long as packing the weights anew. Nobody else can write here.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from io import FileIO
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.image import ENTRY, Image
from irload.plan.memory.arena import aligned_bytes
from irload.record import record

_MAGIC = b"irload model 1\n\0"
_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 20
_ODD = 0x9E3779B97F4A7C15
_ARRAYS = (("words", np.uint64), ("kinds", np.uint8), ("entries", np.int64))


class Damaged(Exception):
    """A file that is not what was written."""


@record(eq=False)
class Plan:
    """What a file holds: what is said of the model, the image of its plan, and the constants as bytes."""

    model: Mapping[str, Any]
    image: Image
    constants: Array


def pieces(
    key: str, model: Mapping[str, Any], image: Image, constants: Iterable[bytes | memoryview]
) -> Iterator[bytes]:
    """The bytes of a file, which is that of this key alone."""
    arrays = [getattr(image, name).tobytes() for name, _ in _ARRAYS]
    said = {
        "model": model,
        "sizes": [image.arena, image.constants, image.temporary, image.scratch],
        "arrays": [len(a) for a in arrays],
        "objects": [len(o) for o in image.objects],
        "calls": image.calls,
    }
    head = b"".join([json.dumps(said).encode(), b"\n", *arrays, *image.objects])
    yield b"".join([_MAGIC, _LENGTH.pack(len(head)), _digest(key, head), head])
    checksum = 0
    for chunk in _chunks(constants):
        checksum = _added(checksum, np.frombuffer(chunk, np.uint64))
        yield chunk
    yield _LENGTH.pack(checksum)


def plan_in(file: FileIO, key: str) -> Plan:
    """What the file of a key holds. Raises Damaged, or OSError."""
    start = file.read(len(_MAGIC) + _LENGTH.size + 32)
    if len(start) < len(_MAGIC) + _LENGTH.size + 32 or not start.startswith(_MAGIC):
        raise Damaged
    (length,) = _LENGTH.unpack_from(start, len(_MAGIC))
    head = file.read(min(length, os.fstat(file.fileno()).st_size))
    if len(head) != length or _digest(key, head) != start[-32:]:
        raise Damaged
    line, _, rest = head.partition(b"\n")
    said = json.loads(line)
    cut: list[bytes] = []
    for size in (*said["arrays"], *said["objects"]):
        cut.append(rest[:size])
        rest = rest[size:]
    arrays = [np.frombuffer(data, kind) for data, (_, kind) in zip(cut, _ARRAYS, strict=False)]
    arena, size, temporary, scratch = said["sizes"]
    words, kinds, entries = arrays
    calls = tuple((first, last) for first, last in said["calls"])
    objects = tuple(cut[len(_ARRAYS) :])
    image = Image(arena, size, temporary, scratch, words, kinds, entries.reshape(-1, ENTRY), objects, calls)
    return Plan(said["model"], image, _constants(file, image.constants))


def _digest(key: str, head: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + head).digest()


def _constants(file: FileIO, count: int) -> Array:
    """The constants, in memory of large pages. Mapped from the file, inferences would take 1 or 2 % more time."""
    found = aligned_bytes(max(-(-count // 8) * 8, 8))
    checksum = 0
    for first in range(0, found.size, _CHUNK):
        chunk = found[first : first + _CHUNK]
        at = 0
        while at < chunk.size:
            read = file.readinto(chunk.data[at:])
            if not read:
                raise Damaged
            at += read
        checksum = _added(checksum, chunk.view(np.uint64))
    if file.read() != _LENGTH.pack(checksum):
        raise Damaged
    return found


def _chunks(parts: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """The same bytes in chunks of one size, the last one shorter: of whole words, and at least one."""
    held = bytearray()
    empty = True
    for part in parts:
        view = memoryview(part)
        for first in range(0, len(view), _CHUNK):
            held += view[first : first + _CHUNK]
            while len(held) >= _CHUNK:
                yield bytes(held[:_CHUNK])
                del held[:_CHUNK]
                empty = False
    held += bytes(-len(held) % 8)
    if held or empty:
        yield bytes(held) or bytes(8)


def _added(checksum: int, words: Array) -> int:
    """The checksum of what came before and of a chunk."""
    return (checksum * _ODD + int(np.add.reduce(words, dtype=np.uint64))) % (1 << 64)

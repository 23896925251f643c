"""The file of a plan: a header, then the constants, each with a keyed digest that only this user can compute.

The header is a line of JSON, then the code of the stored executable. Constants are hashed by XXH3, which takes less
time than reading them.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from io import FileIO
from typing import Any

from irload.core.tensor import Array
from irload.plan.backends.compiled import StoredExecutable
from irload.plan.memory.arena import aligned_bytes
from irload.record import record
from irload.safety.fingerprint import Hash
from irload.safety.secret import DIGEST, keyed_digest

_MAGIC = b"irload model 3\n\0"
_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 20


class Damaged(Exception):
    """The contents of a file do not match their digests, or are incomplete."""


@record(eq=False)
class Plan:
    """The contents of a file.

    `model`: the description of the model; `arena`: the size of the arena in bytes; `code`: the code of the executable;
    `constants`: the bytes of all constants.
    """

    model: Mapping[str, Any]
    arena: int
    code: bytes
    constants: Array


def pieces(key: str, model: Mapping[str, Any], arena: int, stored: StoredExecutable) -> Iterator[bytes]:
    """Yield the contents of a file. Its digests are valid for this key only."""
    document = {"model": model, "arena": arena, "constants": stored.nbytes}
    head = b"".join([json.dumps(document).encode(), b"\n", stored.code])
    yield b"".join([_MAGIC, _LENGTH.pack(len(head)), _digest(key, b"head", head), head])
    hashed = Hash()
    for chunk in _chunks(stored.constants):
        hashed.update(chunk)
        yield chunk
    yield _digest(key, b"constants", hashed.digest())


def plan_in(file: FileIO, key: str) -> Plan:
    """Read and verify the file of a key. Raises Damaged or OSError."""
    start = file.read(len(_MAGIC) + _LENGTH.size + DIGEST)
    if len(start) < len(_MAGIC) + _LENGTH.size + DIGEST or not start.startswith(_MAGIC):
        raise Damaged
    (length,) = _LENGTH.unpack_from(start, len(_MAGIC))
    head = file.read(min(length, os.fstat(file.fileno()).st_size))
    if len(head) != length or _digest(key, b"head", head) != start[-DIGEST:]:
        raise Damaged
    line, _, code = head.partition(b"\n")
    document = json.loads(line)
    return Plan(document["model"], document["arena"], code, _constants(file, document["constants"], key))


def _digest(key: str, part: bytes, content: bytes) -> bytes:
    return keyed_digest(key.encode(), part, content)


def _constants(file: FileIO, count: int, key: str) -> Array:
    """Read the constants into huge pages. With constants mapped from the file, inferences take 1 to 2 % longer.

    Raises Damaged.
    """
    constants = aligned_bytes(max(-(-count // 8) * 8, 8))
    hashed = Hash()
    for first in range(0, constants.size, _CHUNK):
        chunk = constants[first : first + _CHUNK]
        at = 0
        while at < chunk.size:
            read = file.readinto(chunk.data[at:])
            if not read:
                raise Damaged
            at += read
        hashed.update(chunk.data)
    if file.read(DIGEST + 1) != _digest(key, b"constants", hashed.digest()):
        raise Damaged
    return constants


def _chunks(parts: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Yield the bytes of all parts in chunks of _CHUNK bytes. The last chunk may be shorter.

    Zeros pad it to a multiple of 8 bytes. There is at least one chunk.
    """
    buffer = bytearray()
    empty = True
    for part in parts:
        view = memoryview(part)
        for first in range(0, len(view), _CHUNK):
            buffer += view[first : first + _CHUNK]
            while len(buffer) >= _CHUNK:
                yield bytes(buffer[:_CHUNK])
                del buffer[:_CHUNK]
                empty = False
    buffer += bytes(-len(buffer) % 8)
    if buffer or empty:
        yield bytes(buffer) or bytes(8)

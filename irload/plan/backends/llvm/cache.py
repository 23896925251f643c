"""Object files in the user's cache folder. The key contains all data that determine the code. Files have a digest."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from irload.safety.private_folder import PrivateFolder
from irload.safety.secret import DIGEST, keyed_digest

LARGEST = 256 << 20
"""Maximum bytes of all objects."""


class ObjectCache(PrivateFolder):
    """Objects by the hash of their key. A file consists of a keyed digest of key and object, and the object."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__("kernels", ".o", LARGEST, folder)

    def find(self, key: str) -> bytes | None:
        """The object of a key; None if it is missing, damaged or not authentic."""
        file = self.open(_name(key))
        if file is not None:
            with suppress(OSError), file:
                data = file.read()
                if data[:DIGEST] == _digest(key, data[DIGEST:]):
                    return data[DIGEST:]
        return None

    def store(self, key: str, object: bytes) -> None:
        """Store an object."""
        self.write(_name(key), (_digest(key, object), object))


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:40]


def _digest(key: str, object: bytes) -> bytes:
    return keyed_digest(key.encode(), object)

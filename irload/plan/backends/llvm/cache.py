"""Object files in the user's cache, by a key that says all they were made from; checked before they are run."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from irload.private_folder import PrivateFolder

LARGEST = 256 << 20
"""Bytes that the objects may take."""
WRITES = 64
"""Objects that a process writes before it looks at how many there are."""
_DIGEST = hashlib.sha256().digest_size


class ObjectCache(PrivateFolder):
    """Objects by the hash of their key. Each file is the digest of key and object, then the object."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__("kernels", ".o", LARGEST, folder)
        self._written = 0

    def find(self, key: str) -> bytes | None:
        """The object of a key, None where there is none to be trusted."""
        file = self.open(_name(key))
        if file is not None:
            with suppress(OSError), file:
                data = file.read()
                if data[:_DIGEST] == _digest(key, data[_DIGEST:]):
                    return data[_DIGEST:]
        return None

    def keep(self, key: str, object: bytes) -> None:
        """Keep an object."""
        if self.write(_name(key), (_digest(key, object), object)):
            self._written += 1
            if self._written % WRITES == 0:
                self.trim()


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:40]


def _digest(key: str, object: bytes) -> bytes:
    return hashlib.sha256(b"%d\n%s\n%s" % (len(key), key.encode(), object)).digest()

"""Keyed digests that no other user can forge: the key is a file of random bytes with mode 600 in the user's cache."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

from irload.safety.private_folder import PrivateFolder

__all__ = ["DIGEST", "kept_secret", "keyed_digest"]

DIGEST = 32
"""Bytes of a digest and of the secret."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_known: dict[Path, bytes] = {}
_of_this_process = os.urandom(DIGEST)


def keyed_digest(*parts: bytes) -> bytes:
    """The keyed digest of the parts and their lengths. Without a stored secret the key is random for each process."""
    digest = hashlib.blake2b(key=kept_secret() or _of_this_process, digest_size=DIGEST)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def kept_secret() -> bytes | None:
    """The secret, created on first use; None if the cache is read-only or unsafe."""
    folder = _folder().folder
    if folder not in _known:
        secret = _read() or _create()
        if secret is None:
            return None
        _known[folder] = secret
    return _known[folder]


def _folder() -> PrivateFolder:
    return PrivateFolder("", ".key")


def _read() -> bytes | None:
    file = _folder().open("secret")
    if file is not None:
        with suppress(OSError), file:
            status = os.fstat(file.fileno())
            others = status.st_mode & _OTHERS if hasattr(os, "geteuid") else 0
            secret = file.read(DIGEST + 1)
            if len(secret) == DIGEST and not others:
                return secret
    return None


def _create() -> bytes | None:
    """Store a new secret and return it, or the secret of a process that was faster."""
    folder = _folder()
    name = f"new-{os.urandom(8).hex()}"
    if not folder.write(name, [os.urandom(DIGEST)]):
        return None
    new, secret = folder.folder / f"{name}.key", folder.folder / "secret.key"
    with suppress(OSError):
        try:
            os.link(new, secret)
        except FileExistsError:
            if _read() is None:  # cut off, or others could read it
                os.replace(new, secret)
        except OSError:  # a file system without links
            os.replace(new, secret)
    with suppress(OSError):
        os.unlink(new)
    return _read()

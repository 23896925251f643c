"""The two files of a model, opened once: the XML is in memory, the weights are fingerprinted and stay open."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from pathlib import Path

from irload.errors import ReadError
from irload.safety.files import open_regular, read_limited
from irload.safety.fingerprint import Fingerprint, fingerprint
from irload.safety.limits import Limits

__all__ = ["ModelFiles", "WeightsFile", "open_model"]


class WeightsFile:
    """A .bin file with its fingerprint. It stays open until `close`, so renaming another file over it has no effect."""

    def __init__(self, path: Path, descriptor: int, seal: Fingerprint) -> None:
        self.path = path
        self.seal = seal
        self.descriptor: int | None = descriptor
        self._closing = weakref.finalize(self, os.close, descriptor)

    def close(self) -> None:
        """Close it."""
        self.descriptor = None
        self._closing()


class ModelFiles:
    """The bytes of an XML file and its .bin file; `weights` is None if there is no file `beside`."""

    def __init__(self, content: bytes, beside: Path, weights: WeightsFile | None) -> None:
        self.content = content
        self.beside = beside
        self.weights = weights

    def close(self) -> None:
        """Close the .bin file."""
        if self.weights is not None:
            self.weights.close()


def open_model(path: Path, limits: Limits, largest: Callable[[bytes], int]) -> ModelFiles | None:
    """Open the files of a model and fingerprint the weights.

    None if they cannot be read, which `read_model` reports, or if the weights take more bytes than `largest` returns
    for the XML.
    """
    try:
        content = read_limited(path, "the model", limits.xml_bytes)
        beside = path.with_suffix(".bin")
        if len(content) > limits.xml_bytes:
            return None
        if not beside.exists():
            return ModelFiles(content, beside, None)
        descriptor, size = open_regular(beside, "the weights")
    except (OSError, ValueError, ReadError):
        return None
    seal = None
    try:
        max_size = largest(content)
        seal = fingerprint(descriptor, max_size) if size <= max_size else None
    except OSError:
        pass
    finally:
        if seal is None:
            os.close(descriptor)
    return None if seal is None else ModelFiles(content, beside, WeightsFile(beside, descriptor, seal))

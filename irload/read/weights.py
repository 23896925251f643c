"""The .bin file: opening it safely, and turning ranges of it into arrays."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np

from irload.core.element import ElementType
from irload.core.packing import unpack
from irload.core.tensor import Array
from irload.errors import ReadError


class Weights:
    """The bytes of a .bin file, read on first need and kept; arrays over the same range share one buffer.

    Made from a path, from bytes or an array, or from None (no weights).
    """

    def __init__(self, source: str | Path | bytes | bytearray | memoryview | Array | None) -> None:
        self.path: str | None = None
        self._blob: Array | None = None
        self._arrays: dict[tuple[int, int, str, tuple[int, ...]], Array] = {}
        if source is None:
            self.size = 0
        elif isinstance(source, str | Path):
            self.path = str(source)
            self.size = _regular_size(self.path)
        else:
            self._blob = (
                np.frombuffer(source, np.uint8) if not isinstance(source, np.ndarray) else source.view(np.uint8).ravel()
            )
            self.size = self._blob.size

    @property
    def present(self) -> bool:
        """True when there are weights at all, be they empty."""
        return self.path is not None or self._blob is not None

    def check(self, offset: int, size: int) -> None:
        """Raise ReadError when the range offset..offset+size is not inside the file."""
        if not self.present:
            raise ReadError(
                f"needs {size} bytes of weights, but there is no .bin file beside the model; name it with weights=…"
            )
        if not (0 <= offset <= self.size and 0 <= size <= self.size - offset):
            raise ReadError(
                f"weights at offset {offset}, size {size} are outside the .bin file of {self.size} bytes"
                f"{f' ({self.path})' if self.path else ''}; it may be truncated or belong to another model"
            )

    def array(self, offset: int, size: int, element: ElementType, shape: tuple[int, ...]) -> Array:
        """The constant at that range, read-only and aligned; values are unpacked to the element's storage dtype."""
        key = (offset, size, element.name, shape)
        found = self._arrays.get(key)
        if found is None:
            found = unpack(self.bytes(offset, size), element, shape)
            found.flags.writeable = False
            self._arrays[key] = found
        return found

    def bytes(self, offset: int, size: int) -> Array:
        """The bytes of a range, a view. Raises ReadError as `check` does."""
        self.check(offset, size)
        return self._everything()[offset : offset + size]

    def _everything(self) -> Array:
        if self._blob is None:
            assert self.path is not None
            # Read, not mapped: a map dies by SIGBUS when the file shrinks under it.
            blob = np.fromfile(self.path, np.uint8, self.size)
            if blob.size != self.size:
                raise ReadError(f"{self.path} shrank while it was read: {blob.size} of {self.size} bytes were left")
            self._blob = blob
        return self._blob


def _regular_size(path: str) -> int:
    """The size of a regular file. Raises ReadError for anything else, without blocking on FIFOs."""
    try:
        info = os.stat(path)
    except OSError as error:
        raise ReadError(f"cannot open weights {path}: {error.strerror}") from None
    if not stat.S_ISREG(info.st_mode):
        raise ReadError(f"weights {path} are not a regular file")
    return info.st_size

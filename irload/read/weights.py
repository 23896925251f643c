"""The .bin file: safe opening, and conversion of its ranges to arrays."""

from __future__ import annotations

import hashlib
import math
import mmap as mapping
import os
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from irload.core.element import ElementType
from irload.core.packing import unpack
from irload.core.tensor import Array, owner_of
from irload.errors import ReadError, out_of_memory
from irload.read.prolog import BOM
from irload.safety.files import advice, identify, open_regular
from irload.safety.integrity import sha256
from irload.safety.limits import DEFAULT, Limits
from irload.system.portable import read_at

# Does not affect the digest.
PART = 1 << 24  # pragma: no mutate
"""Bytes hashed per read."""
# Longer than any signature.
HEAD = 256  # pragma: no mutate
"""Number of bytes read to recognise a file of another format."""
_NO_WEIGHTS = ("a Git-LFS", "an HTML")
"""Formats whose signatures never begin a .bin file of weights. Weights may begin with other signatures by chance."""


class Weights:
    """The bytes of a .bin file. A range is read on first use; constants over the same range share the array.

    Arrays live as long as they are referenced: a plan drops weights that it has converted or packed. Created from a
    path, from bytes or an array, or from None (no weights). A file is mapped only with `mmap`: a map kills the process
    (SIGBUS) if the file shrinks.
    """

    def __init__(
        self,
        source: str | Path | bytes | bytearray | memoryview | Array | None,
        limits: Limits = DEFAULT,
        *,
        mmap: bool = False,
        beside: Path | None = None,
    ) -> None:
        self.limits = limits
        self.beside = beside
        """The default .bin file beside the model, if no other file was given."""
        self.path: str | None = None
        self._blob: Array | None = None
        self._ranges: WeakValueDictionary[tuple[int, int], Array] = WeakValueDictionary()
        self._arrays: WeakValueDictionary[tuple[int, int, str, tuple[int, ...]], Array] = WeakValueDictionary()
        self._unpacked: WeakValueDictionary[tuple[int, int, str, int], Array] = WeakValueDictionary()
        self._uncounted = 0
        """Bytes read since the live arrays were last counted."""
        self._identity: tuple[int, ...] = ()
        if source is None:
            self.size = 0
        elif isinstance(source, str | Path):
            self.path = str(source)
            self.size = self._inspect(self.path)
            if mmap and self.size:
                self._blob = self._mapped(self.path)
        else:
            self._blob = _flat(source)
            self.size = self._blob.size
            _require_no_xml("the weights", self._blob[:HEAD].tobytes())

    @property
    def present(self) -> bool:
        """True if there is a .bin file, even an empty one."""
        return self.path is not None or self._blob is not None

    def check(self, offset: int, size: int) -> None:
        """Raise ReadError unless the range offset..offset+size is inside the file."""
        if not self.present:
            name, near = (self.beside.name, advice(self.beside, (".bin",))) if self.beside else (".bin file", "")
            raise ReadError(
                f"needs {size} bytes of weights, but there is no {name} beside the model; "
                f"name the file with weights=… (irrun --bin FILE){near}"
            )
        if not (0 <= offset <= self.size and 0 <= size <= self.size - offset):
            raise ReadError(
                f"weights at offset {offset}, size {size} are outside the .bin file of {self.size} bytes"
                f"{f' ({self.path})' if self.path else ''}; it may be truncated or belong to another model"
            )

    def array(self, offset: int, size: int, element: ElementType, shape: tuple[int, ...]) -> Array:
        """The constant at that range, read-only and aligned; values are unpacked to the element's storage dtype."""
        key = (offset, size, element.name, shape)
        array = self._arrays.get(key)
        if array is None:
            array = self._values(offset, size, element, math.prod(shape)).reshape(shape)
            array.flags.writeable = False
            self._arrays[key] = array
        return array

    def _values(self, offset: int, size: int, element: ElementType, count: int) -> Array:
        """The values as a 1-D array: a view of the bytes if the element needs no unpacking, else unpacked once."""
        key = (offset, size, element.name, count)
        owner = self._unpacked.get(key)
        if owner is not None:
            return owner.ravel().view(element.dtype)[:count]
        raw = self.raw(offset, size)
        values = unpack(raw, element, (count,))
        owner = owner_of(values)
        if owner is not owner_of(raw) and owner.flags.c_contiguous and owner.dtype != object:
            self._unpacked[key] = owner
        return values

    def digest(self, *, keep: bool) -> str | None:
        """The SHA-256 of all bytes, None without a file. With `keep`, `bytes` later returns the hashed bytes."""
        if not self.present:
            return None
        if self._blob is None and keep:
            self._blob = self._read(0, self.size)
        if self._blob is not None:
            return sha256(self._blob)
        whole = hashlib.sha256()
        for at in range(0, self.size, PART):
            whole.update(self._read(at, min(PART, self.size - at)).data)
        return whole.hexdigest()

    def raw(self, offset: int, size: int) -> Array:
        """The bytes of a range.

        Raises OutOfMemory, and ReadError as `check` does or if the file has changed since it was opened.
        """
        self.check(offset, size)
        if self._blob is not None:
            return self._blob[offset : offset + size]
        data = self._ranges.get((offset, size))
        if data is None:
            if self._overlaps(size):  # reading the whole file once takes less memory
                self._blob = self._read(0, self.size)
                return self.raw(offset, size)
            data = self._ranges[offset, size] = self._read(offset, size)
        return data

    def _overlaps(self, size: int) -> bool:
        """True if the live ranges, which may overlap, and another `size` bytes exceed the file.

        The live arrays are counted only after as many bytes as the file has were read: counting for each of thousands
        of constants would be slow.
        """
        self._uncounted += size
        if self._uncounted <= self.size:
            return False
        self._uncounted = 0
        return sum(map(len, self._ranges.values())) + size > self.size

    def _read(self, offset: int, size: int) -> Array:
        assert self.path is not None
        self.limits.require("peak_bytes", size, f"the read of {self.path} is too large")
        try:
            result = np.empty(size, np.uint8)
        except MemoryError as error:
            raise out_of_memory(f"for {size} bytes of {self.path}", error) from None
        descriptor = self._open()
        try:
            missing = size - read_at(descriptor, result.data, offset)
            if missing:
                raise ReadError(f"{self.path} shrank after it was opened: it ends {missing} bytes early")
        except OSError as error:
            raise ReadError(f"cannot read {self.path}: {error.strerror}") from None
        finally:
            os.close(descriptor)
        return result

    def _open(self) -> int:
        """A new descriptor of the file for one read. Raises ReadError if the file was replaced since it was opened."""
        assert self.path is not None
        descriptor, _ = open_regular(self.path, "the weights")
        if _identity(descriptor) != self._identity:
            os.close(descriptor)
            raise self._changed()
        return descriptor

    def _changed(self) -> ReadError:
        return ReadError(f"{self.path} has changed since it was opened; read the model again")

    def _mapped(self, path: str) -> Array:
        descriptor, size = open_regular(path, "the weights")
        try:
            if _identity(descriptor) != self._identity:
                raise self._changed()
            return np.frombuffer(mapping.mmap(descriptor, size, access=mapping.ACCESS_READ), np.uint8)
        except OSError as error:
            raise ReadError(f"cannot map {path}: {error.strerror}") from None
        finally:
            os.close(descriptor)

    def _inspect(self, path: str) -> int:
        """The size of the file. Raises ReadError for files of another format."""
        descriptor, size = open_regular(path, "the weights")
        try:
            self._identity = _identity(descriptor)
            buffer = bytearray(HEAD)
            head = bytes(buffer[: read_at(descriptor, memoryview(buffer), 0)])
        except OSError as error:
            raise ReadError(f"cannot read {path}: {error.strerror}") from None
        finally:
            os.close(descriptor)
        kind = identify(head) or ""
        if kind.startswith(_NO_WEIGHTS):
            raise ReadError(f"the weights {path} are {kind}")
        _require_no_xml(f"the weights {path}", head)
        return size


def _require_no_xml(subject: str, head: bytes) -> None:
    """Raise ReadError if the first bytes show an XML file, or if the file name at the end of `subject` does."""
    if head.removeprefix(BOM).startswith(b"<?xml") or subject.lower().endswith(".xml"):
        raise ReadError(f"{subject} are an XML file; name the .bin file with weights=… (irrun --bin FILE)")


def _identity(descriptor: int) -> tuple[int, ...]:
    """Identifies one version of a file: device, inode, size, times."""
    info = os.fstat(descriptor)
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


def _flat(source: Any) -> Array:
    """The bytes of a buffer or an array as u8."""
    try:
        if isinstance(source, np.ndarray):
            return np.ascontiguousarray(source).ravel().view(np.uint8)
        return np.frombuffer(source, np.uint8)
    except (TypeError, ValueError) as error:
        raise ReadError(f"the weights are neither a path nor bytes: {error}") from None

"""Reads untrusted .npy and .npz files, and writes results atomically."""

from __future__ import annotations

import math
import os
import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from irload.core.tensor import Array
from irload.errors import LimitExceeded, ReadError, Where
from irload.safety.files import identify, open_regular
from irload.safety.limits import DEFAULT, Limits

if TYPE_CHECKING:
    from zipfile import ZipInfo

__all__ = ["Check", "load_npy", "load_npz", "save_npy", "save_npz", "storable", "write_npy"]

Check = Callable[[str, np.dtype[Any], tuple[int, ...]], None]
"""Called with a member's name (empty for .npy), dtype and shape before its data are read; raises to reject the data."""

_DTYPES = frozenset({"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"})


# -- reading -----------------------------------------------------------------------------------------------------------


def load_npy(path: str | Path, check: Check | None = None, limits: Limits = DEFAULT) -> Array:
    """Return the array of a .npy file in native byte order and C order, with unchanged rank. Never unpickles.

    Raises ReadError unless it contains numbers, booleans or text and its size matches its header; LimitExceeded for
    more than `limits.tensor_bytes` bytes. Nothing is allocated before these checks.
    """
    with _opened(path) as stream:
        return _read_array(stream, os.fstat(stream.fileno()).st_size, "", check, limits)


def load_npz(
    path: str | Path,
    check: Check | None = None,
    limits: Limits = DEFAULT,
    only: Callable[[Sequence[str]], Collection[str]] | None = None,
) -> dict[str, Array]:
    """Return the arrays of a .npz archive by name. Each is checked as by `load_npy`; the limit applies to their sum.

    `only` returns the names to read from a list of all names; other members are not unpacked.
    """
    from zipfile import BadZipFile, ZipFile  # lazy import, as it is slow and most arrays are .npy files

    with _opened(path, BadZipFile) as stream, ZipFile(stream) as archive:
        members = archive.infolist()
        _check_members(members, limits)
        arrays: dict[str, Array] = {}
        named = {member.filename.removesuffix(".npy"): member for member in members}
        wanted = named if only is None else only(list(named))
        for name, member in named.items():
            if name not in wanted:
                continue
            with archive.open(member) as content:
                arrays[name] = _read_array(content, member.file_size, name, check, limits)
        return arrays


@contextmanager
def _opened(path: str | Path, *damaged: type[Exception]) -> Generator[IO[bytes], None, None]:
    """Open a file for reading. Errors of the system and of decoding become ReadErrors that name the file.

    `damaged`: further exceptions that mean that the file is damaged.
    """
    try:
        descriptor, _ = open_regular(path, "the array")
        with os.fdopen(descriptor, "rb") as stream:
            yield stream
    except (ReadError, LimitExceeded) as error:
        raise error.at(Where(str(path))) from None
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror or error}", Where(str(path))) from None
    except (*damaged, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise ReadError(f"is damaged: {error}", Where(str(path))) from None


def _read_array(stream: IO[bytes], size: int, name: str, check: Check | None, limits: Limits) -> Array:
    label = f"array '{name}' " if name else ""
    shape, fortran, dtype, header = _header(stream, label)
    if dtype.hasobject:
        raise ReadError(f"{label}holds Python objects (a pickle), which irload never loads")
    if dtype.str[1:] not in _DTYPES and dtype.kind not in "US":
        raise ReadError(f"{label}is of dtype {dtype}; irload takes booleans, integers, floats and text")
    if len(shape) > 64 or any(n < 0 for n in shape):
        raise ReadError(f"{label}has the impossible shape {list(shape)[:8]}")
    needed = math.prod(shape) * dtype.itemsize
    limits.require("tensor_bytes", needed, f"{label}says that it is very large")
    if header + needed != size:
        raise ReadError(f"{label}{dtype}{list(shape)} takes {needed} bytes after its header, found {size - header}")
    if check is not None:
        check(name, dtype, shape)
    raw = stream.read(needed)
    if len(raw) != needed:
        raise ReadError(f"{label}ends after {len(raw)} of its {needed} bytes")
    array = np.frombuffer(raw, dtype, math.prod(shape)) if needed else np.zeros(math.prod(shape), dtype)
    array = array.reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="), order="C", copy=False)


def _header(stream: IO[bytes], label: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Read the header. Returns the shape, whether the order is Fortran's, the dtype, and the bytes of the header."""
    try:
        version = npy.read_magic(stream)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if read is None:
            raise ReadError(
                f"{label}is in version {version[0]}.{version[1]} of the .npy format; irload reads 1.0 and 2.0"
            )
        shape, fortran, dtype = read(stream)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, OverflowError) as error:
        reason = str(error).split("\n", 1)[0][:200]
        kind = _kind_of(stream)
        raise ReadError(f"{label}is not a .npy array: {kind or reason}") from None
    return shape, fortran, dtype, stream.tell()


def _kind_of(stream: IO[bytes]) -> str:
    """Describe the format of a file that is not an array, for a message. Empty if the stream is not seekable.

    Also empty if the file starts with `ARRAY_MAGIC`: the header is then damaged, and NumPy's error is more specific.
    """
    if not stream.seekable():
        return ""
    stream.seek(0)
    head = stream.read(HEAD)
    if head.startswith(ARRAY_MAGIC):
        return ""
    kind = identify(head)
    if kind is None:
        return "it is XML; a model comes first, its inputs follow"
    if kind not in ("not XML", "blank"):
        return f"it is {kind}"
    description = "it is text" if _is_text(head) else "unknown format"
    return f"{description}; expected a file written by numpy.save or numpy.savez"


def _is_text(head: bytes) -> bool:
    try:
        text = getincrementaldecoder("utf-8")().decode(head)  # tolerates a truncated last character
    except UnicodeDecodeError:
        return False
    return all(c.isprintable() or c.isspace() for c in text)


HEAD = 256
"""Number of leading bytes from which the format of a file is identified."""
ARRAY_MAGIC = b"\x93NUMPY"


def _check_members(members: list[ZipInfo], limits: Limits) -> None:
    """Check the members that the archive's directory declares, before any is unpacked. Raises ReadError."""
    from zipfile import ZIP_DEFLATED, ZIP_STORED

    names = [m.filename for m in members]
    if len(set(names)) != len(names):
        raise ReadError("contains two arrays with the same name")
    for member in members:
        if (
            not member.filename.endswith(".npy")
            or member.compress_type not in (ZIP_STORED, ZIP_DEFLATED)
            or member.flag_bits & 1
        ):
            raise ReadError(f"member '{member.filename[:80]}' is not a stored or deflated .npy array")
    total = sum(m.file_size for m in members)
    limits.require("tensor_bytes", total, "unpacks to too much")


# -- writing -----------------------------------------------------------------------------------------------------------


def save_npy(path: str | Path, array: Array, *, force: bool = False) -> None:
    """Write one array as .npy, atomically. Raises FileExistsError for an existing file, unless `force`."""
    _write(path, lambda stream: write_npy(stream, array), force=force)


def save_npz(path: str | Path, arrays: Mapping[str, Array], *, force: bool = False) -> None:
    """Write arrays by name as .npz, atomically. Raises FileExistsError as `save_npy` does."""
    from zipfile import ZIP_STORED, ZipFile

    def write(stream: IO[bytes]) -> None:
        with ZipFile(stream, "w", ZIP_STORED) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    write_npy(member, array)

    _write(path, write, force=force)


def write_npy(stream: IO[bytes], array: Array) -> None:
    """Write one array as .npy into an open stream, converted by `storable` if the format lacks its type."""
    # NumPy writes to a real file through C's buffered streams, and does not check that the last bytes are written.
    # The wrapper is not a real file, so NumPy calls its `write`, which raises if the disk is full.
    plain: Any = SimpleNamespace(write=stream.write)
    npy.write_array(plain, np.asanyarray(storable(array)), allow_pickle=False)


def storable(array: Array) -> Array:
    """Return the array in a dtype of .npy files: bf16 and f8 are converted to f32 (exactly), strings to NumPy's str."""
    if array.dtype == object:
        return array.astype(str)
    return array if array.dtype.str[1:] in _DTYPES or array.dtype.kind in "US" else array.astype(np.float32)


def _write(path: str | Path, write: Callable[[IO[bytes]], object], *, force: bool) -> None:
    if not force and os.path.lexists(path):
        raise FileExistsError(f"{path} exists already")
    from irload.write.atomic import write_atomically  # lazy import: reading does not need it

    write_atomically(path, write)

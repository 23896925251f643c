"""Opens untrusted files without blocking, and names the format of files that are not IR."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from irload.errors import ReadError, Where
from irload.system.portable import READ_FLAGS
from irload.wording import near_names

HEAD = 1 << 20
"""Number of bytes read to recognise the format of a file. The root element of an IR must begin within them."""

_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"version https://git-lfs.github.com/spec/", "a Git-LFS pointer, not the file itself; run `git lfs pull`"),
    (0, b"\x1f\x8b", "compressed with gzip; unpack it first"),
    (0, b"BZh", "compressed with bzip2; unpack it first"),
    (0, b"\xfd7zXZ\x00", "compressed with xz; unpack it first"),
    (0, b"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it first"),
    (0, b"PK\x03\x04", "a ZIP archive (a PyTorch, Keras or NumPy file, or a packed model); unpack or convert it first"),
    (0, b"RR_UPCVO", "a compiled OpenVINO model (a blob of one device); use the original .xml and .bin"),
    (0, b"\x89HDF\r\n", "an HDF5 file (a Keras model); convert it with openvino.convert_model"),
    (0, b"GGUF", "a GGUF file (llama.cpp); convert the original model with openvino.convert_model"),
    (4, b"TFL3", "a TensorFlow Lite model; convert it with openvino.convert_model"),
    (0, b"\x80\x02", "a Python pickle (a PyTorch checkpoint); convert the model with openvino.convert_model"),
    (0, b"\x89PNG\r\n", "a PNG image; `irrun batch` runs models on images"),
    (0, b"\xff\xd8\xff", "a JPEG image; `irrun batch` runs models on images"),
    (0, b"GIF8", "a GIF image; `irrun batch` runs models on images"),
    (8, b"WEBP", "a WebP image; `irrun batch` runs models on images"),
    (0, b"PAR1", "a parquet file; `irrun batch` runs models on tables"),
    (0, b"\x93NUMPY", "a .npy array"),
    (0, b"\xff\xfe", "text in UTF-16; an IR is UTF-8"),
    (0, b"\xfe\xff", "text in UTF-16; an IR is UTF-8"),
    (0, b"<\x00", "text in UTF-16; an IR is UTF-8"),
    (0, b"\x00<", "text in UTF-16; an IR is UTF-8"),
)


def identify(head: bytes) -> str | None:
    """Return the format of a file, recognised by its first bytes; None if it may be an IR."""
    if not head.strip(b" \t\r\n\0"):
        return "empty" if not head else "blank"
    for offset, mark, description in _SIGNATURES:
        if head.startswith(mark, offset):
            return description
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    lower = start[:64].lower()
    if lower.startswith((b"<!doctype html", b"<html")):
        return "an HTML page, perhaps of a failed download or a login"
    if start.startswith(b"<"):
        return None
    if head[8:9] == b"{" and b'"dtype"' in head:
        return "a safetensors file; convert the model with openvino.convert_model"
    if head[:1] == b"\x08" and b"\0" not in head[:2]:
        return "an ONNX model (or another protobuf); convert it with openvino.convert_model"
    if start.startswith((b"{", b"[")):
        return "JSON"
    return "not XML"


def open_regular(path: str | Path, subject: str) -> tuple[int, int]:
    """Open a regular file and return (descriptor, size). Follows symbolic links. Raises ReadError for other files.

    Never blocks on a FIFO or a device. The caller closes the descriptor.
    """
    try:
        # Checked before opening: open() without O_NONBLOCK blocks on a FIFO, and Windows cannot open a folder.
        _require_regular(os.stat(path).st_mode, path, subject)
        descriptor = os.open(path, READ_FLAGS)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        hint = advice(path, _SUFFIXES.get(subject, ()))
        raise ReadError(f"cannot open {subject}: {reason}{hint}", Where(str(path))) from None
    info = os.fstat(descriptor)
    try:
        _require_regular(info.st_mode, path, subject)  # checked again: the file may have been replaced since
    except ReadError:
        os.close(descriptor)
        raise
    return descriptor, info.st_size


def _require_regular(mode: int, path: str | Path, subject: str) -> None:
    if not stat.S_ISREG(mode):
        hint = advice(path, _SUFFIXES.get(subject, ()))
        raise ReadError(f"cannot open {subject}: {_kind(mode)}, expected a regular file{hint}", Where(str(path)))


def read_limited(path: str | Path, subject: str, limit: int) -> bytes:
    """Return the first `limit` + 1 bytes of a regular file, or all of a shorter one. Raises ReadError."""
    descriptor, _ = open_regular(path, subject)
    with os.fdopen(descriptor, "rb") as stream:
        try:
            return stream.read(limit + 1)
        except OSError as error:
            raise ReadError(f"cannot read {subject}: {error.strerror}", Where(str(path))) from None


LISTED = 1000
"""Maximum number of entries of a folder that `advice` searches for similar names."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/{1,2}[^/]")


_SUFFIXES = {"the model": (".xml",), "the weights": (".bin",), "the array": (".npy", ".npz")}
"""The suffixes of each kind of file."""


def advice(path: str | Path, suffixes: Sequence[str]) -> str:
    """Return advice on a path that cannot be opened, such as `; is it 'model.xml'?`. May be empty."""
    if _URL.match(str(path)):
        return "; it is a URL: download the file first"
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in islice(entries, LISTED) if Path(e.name).suffix.lower() in suffixes)
    except (OSError, ValueError):
        return ""
    if path.is_dir():
        return f"; it holds {', '.join(names[:3])}" if names else ""
    others = [name for name in names if name != path.name]
    near = near_names(path.name, others, 3, 0.7) or [name for name in others if Path(name).stem == path.name]
    return f"; is it {' or '.join(repr(str(folder / name)) for name in near)}?" if near else ""


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "a special file")

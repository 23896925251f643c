"""Converts errors of irload and of the system to messages with a remedy, and to exit codes."""

from __future__ import annotations

import errno
import re

OK = 0
FINDINGS = 1  # the model is inconsistent, or contradicts its declared types and shapes
USAGE = 2
UNREADABLE = 3
UNSUPPORTED = 4
OUT_OF_MEMORY = 5
INTERNAL = 70
INTERRUPTED = 130

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REMEDIES = {
    errno.ENOSPC: "free some space there, or write elsewhere",
    errno.EDQUOT: "delete some of your files there, or write elsewhere",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or write elsewhere",
    errno.EROFS: "write elsewhere",
}
_OPTION = re.compile(r"\S+ \(irrun (--[^)]*)\)")
"""A keyword argument followed by the equivalent option of the command line."""


def message_and_code(error: Exception) -> tuple[str, int] | None:
    """Return the message and the exit code of an error; None for an internal error."""
    from irload.errors import DeclaredDiffers, IRError, out_of_memory

    if isinstance(error, IRError):
        refused = "; --strict refuses the file (DeclaredDiffers)" if isinstance(error, DeclaredDiffers) else ""
        return _OPTION.sub(r"\1", str(error)) + refused, _code(error)
    if isinstance(error, FileExistsError):
        return f"{_of_system(error)}; --force replaces it", USAGE
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        lack = error if isinstance(error, MemoryError) else MemoryError(_of_system(error))
        return str(out_of_memory("for the command", lack)), OUT_OF_MEMORY
    return (_of_system(error), UNREADABLE) if isinstance(error, OSError) else None


def _code(error: Exception) -> int:
    from irload.errors import InputInvalid, LimitExceeded, OutOfMemory, ReadError, UnknownOperation, Unsupported

    codes = {
        InputInvalid: USAGE,
        ReadError: UNREADABLE,
        LimitExceeded: UNREADABLE,
        UnknownOperation: UNSUPPORTED,
        Unsupported: UNSUPPORTED,
        OutOfMemory: OUT_OF_MEMORY,
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), FINDINGS)


def _of_system(error: OSError) -> str:
    """Return the file, the reason given by the system, and a remedy. All writers name their file, except for stdout."""
    file = error.filename or ("standard output" if error.errno in _FULL else None)
    fact = str(error) if file is None else f"{file}: {error.strerror}"
    remedy = _REMEDIES.get(error.errno or 0)
    return fact if remedy is None else f"{fact}; {remedy}"

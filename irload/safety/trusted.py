"""Checks that nobody but this user and root can replace a folder or a component of its path."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["distrust", "is_ours"]

LINKS = 40
"""Maximum number of symbolic links to follow, the limit of Linux."""
_ROOT = 0


def distrust(folder: Path, *, link: bool = True, shared: bool = False) -> str | None:
    """The reason why others could plant files in a folder, or None. Raises OSError if the folder does not exist.

    Every component of the path and the targets of its symbolic links are checked: each must belong to this user or to
    root, and others must not be able to write to it. Exceptions are parents with the sticky bit, such as /tmp, where
    others cannot replace entries. Always None on Windows, whose modes do not describe other users.

    `link`: the folder itself may be a symbolic link. `shared`: it may be sticky.
    """
    if not hasattr(os, "geteuid"):
        return None
    path = Path(os.path.abspath(folder))
    at, left, links = path.anchor, [*reversed(path.parts[1:])], 0
    fault = _fault(at, os.lstat(at))
    while left and fault is None:
        name = left.pop()
        part = os.path.normpath(os.path.join(at, name))
        status = os.lstat(part)
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if not left and not link:
                return f"{part} is a symbolic link"
            if links > LINKS:
                return f"{part} is one of too many symbolic links"
            if not is_ours(status):
                return f"{part} belongs to another user"
            target = os.readlink(part)
            at = os.path.sep if os.path.isabs(target) else at
            left += reversed([p for p in target.split(os.path.sep) if p and p != os.path.curdir])
        else:
            fault, at = _fault(part, status, sticky=shared or bool(left)), part
    return fault


def is_ours(status: os.stat_result) -> bool:
    """Whether a file belongs to this user or to root; always true on Windows."""
    geteuid = getattr(os, "geteuid", None)
    return geteuid is None or status.st_uid in (geteuid(), _ROOT)


def _fault(path: str, status: os.stat_result, *, sticky: bool = True) -> str | None:
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(path)
    if not is_ours(status):
        return f"{path} belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not (sticky and status.st_mode & stat.S_ISVTX):
        return f"other users may write to {path} (chmod go-w {path} prevents it)"
    return None

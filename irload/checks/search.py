"""Searches files and folders for IR files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from irload.errors import ReadError
from irload.read.prolog import root_tag
from irload.safety.files import HEAD, identify, open_regular


def find_models(paths: Iterable[Path], *, only_ir: bool = False) -> tuple[list[Path], int]:
    """The files to check, without duplicates, and the number of XML files skipped because they are not IR.

    A folder stands for the .xml files in it, at any depth, that could be IR; folders whose name begins with a dot are
    skipped. Explicitly named files are included even if they are not IR, unless `only_ir`. Raises FileNotFoundError.
    """
    files: dict[Path, None] = {}
    passed = 0
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"no such file: {path}")
        for file in _inside(path) if path.is_dir() else (path,):
            if (only_ir or path.is_dir()) and is_foreign(file):
                passed += 1
            else:
                files[file] = None
    return list(files), passed


def _inside(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        yield from (Path(parent, f) for f in sorted(files) if f.lower().endswith(".xml"))


def is_foreign(file: Path) -> bool:
    """True for XML whose root element is not `net`. Malformed XML may be a damaged IR, so False for it."""
    try:
        descriptor, _ = open_regular(file, "the model")
    except ReadError:
        return False
    with os.fdopen(descriptor, "rb") as stream:
        head = stream.read(HEAD)
    if identify(head) is not None:
        return False
    try:
        return root_tag(head).lower() != "net"
    except ReadError:  # a DOCTYPE, or another encoding
        return b"<net" not in head

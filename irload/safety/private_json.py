"""JSON files in the user's cache. A file that others may write, or without valid JSON, counts as absent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from irload.safety.private_folder import PrivateFolder

__all__ = ["read_json", "write_json"]

LARGEST = 1 << 24
"""Maximum size of a file, in bytes."""


def read_json(path: Path) -> dict[str, Any]:
    """The object in the file; empty if the file is missing, invalid or not private."""
    file = _folder(path).open(path.stem)
    if file is not None:
        with suppress(OSError, ValueError, RecursionError), file:
            data = file.read(LARGEST + 1)
            parsed: object = json.loads(data) if len(data) <= LARGEST else None
            if isinstance(parsed, dict):
                return cast(dict[str, Any], parsed)
    return {}


def write_json(path: Path, content: Mapping[str, Any]) -> bool:
    """Replace the file; return whether that succeeded."""
    return _folder(path).write(path.stem, [json.dumps(content, indent=1, sort_keys=True).encode()])


def _folder(path: Path) -> PrivateFolder:
    return PrivateFolder("", path.suffix, folder=path.parent)

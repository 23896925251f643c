"""The cache files of traced plans: one file per pattern of input shapes and set of guards."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irload.core.tensor import Array
from irload.model_cache.file import Damaged, pieces, plan_in
from irload.plan.backends.compiled import StoredExecutable
from irload.safety.private_folder import PrivateFolder
from irload.sources import unchanged

__all__ = ["TracedFiles"]


class TracedFiles:
    """Stores traced plans in the cache folder. A file's key is a digest of the model's key and the plan's name.

    `model`: returns the description of the model, which is stored with the first plan, under the model's key; None if
    the description is already stored.
    """

    def __init__(self, folder: PrivateFolder, key: str, model: Callable[[], Mapping[str, Any]] | None = None) -> None:
        self._folder = folder
        self._key = key
        self._model = model

    def find(self, name: str) -> tuple[Mapping[str, Any], Array] | None:
        """Return a document and the bytes of its arrays; None if the file is missing or damaged. Raises OutOfMemory."""
        key = self._digest(name)
        file = self._folder.open(key)
        if file is None:
            return None
        try:
            with file:
                plan = plan_in(file, key)
        except (Damaged, OSError):
            return None
        self._describe()
        return plan.model, plan.constants

    def keep(self, name: str, document: Mapping[str, Any], arrays: Sequence[bytes | memoryview]) -> None:
        """Store a document and its arrays, unless irload's sources have changed since they were loaded."""
        if self._write(self._digest(name), document, arrays):
            self._describe()

    def _describe(self) -> None:
        if self._model is not None:
            self._write(self._key, self._model())
            self._model = None

    def _write(self, key: str, document: Mapping[str, Any], arrays: Sequence[bytes | memoryview] = ()) -> bool:
        stored = StoredExecutable(b"", arrays, sum(map(len, arrays)))
        return unchanged() and self._folder.write(key, pieces(key, document, 0, stored))

    def _digest(self, name: str) -> str:
        return hashlib.sha256(f"{self._key} {name}".encode()).hexdigest()[:40]

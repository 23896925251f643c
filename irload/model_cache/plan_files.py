"""The cache files of models with dynamic shapes.

Traced plans have one file per pattern of input shapes and set of guards. The plan of the first shape has a file, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from irload.core.tensor import Array
from irload.model_cache.file import Damaged, Plan, pieces, plan_in
from irload.plan.backends.compiled import StoredExecutable
from irload.safety.private_folder import PrivateFolder
from irload.sources import unchanged

if TYPE_CHECKING:
    from irload.model import Model
    from irload.plan.executor import Executor

__all__ = ["PlanFiles"]


class PlanFiles:
    """Stores plans in the cache folder. A file's key is a digest of the model's key and the plan's name.

    `model`: returns the description of the model, which is stored with the first plan, under the model's key; None if
    the description is already stored.
    """

    def __init__(self, folder: PrivateFolder, key: str, model: Callable[[], Mapping[str, Any]] | None = None) -> None:
        self._folder = folder
        self._key = key
        self._model = model

    def find(self, name: str) -> tuple[Mapping[str, Any], Array] | None:
        """Return a document and the bytes of its arrays; None if the file is missing or damaged. Raises MemoryError."""
        plan = self.find_static(name)
        if plan is None:
            return None
        self._describe()
        return plan.model, plan.constants

    def find_static(self, name: str) -> Plan | None:
        """Return the plan of one shape; None if the file is missing or damaged. Raises MemoryError."""
        key = self._digest(name)
        file = self._folder.open(key)
        if file is None:
            return None
        with suppress(Damaged, OSError), file:
            return plan_in(file, key)
        return None

    def keep(self, name: str, document: Mapping[str, Any], arrays: Sequence[bytes | memoryview]) -> None:
        """Store a document and its arrays, unless irload's sources have changed since they were loaded."""
        if self._write(self._digest(name), document, arrays):
            self._describe()

    def keep_static(self, name: str, plan: Executor, model: Model, largest: int) -> None:
        """Store the plan of one shape, if it is storable."""
        from irload.model_cache.keeping import plan_pieces  # lazy import: needed only by processes that plan

        key = self._digest(name)
        contents = plan_pieces(plan, model, {}, key, largest)
        if contents is not None and unchanged() and self._folder.write(key, contents):
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

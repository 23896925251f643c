"""One kind of files in the user's cache: counts and removes them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from irload.record import record
from irload.safety.private_folder import Contents, PrivateFolder

__all__ = ["CacheStore"]


@record()
class CacheStore:
    """Files of one kind, such as `tuning`: a folder of bounded size, or a single file."""

    kind: str
    location: PrivateFolder | Path

    @property
    def largest(self) -> int | None:
        """The bound of the folder in bytes; None for a single file."""
        return self.location.largest if isinstance(self.location, PrivateFolder) else None

    def contents(self) -> Contents:
        """The path, the number of files, and their size."""
        if isinstance(self.location, PrivateFolder):
            return self.location.contents()
        try:
            return Contents(self.location, 1, self.location.stat().st_size)
        except OSError:
            return Contents(self.location, 0, 0)

    def clear(self) -> None:
        """Remove all files. Files that cannot be removed remain."""
        if isinstance(self.location, PrivateFolder):
            self.location.clear()
            return
        with suppress(OSError):
            if self.location.is_file():
                self.location.unlink()

"""The memory of an interpreted run: counts the bytes of live arrays, and checks allocations against the limit."""

from __future__ import annotations

from irload.core.tensor import Array, owner_of
from irload.safety.limits import Limits


class MemoryTracker:
    """Counts the memory of the arrays of a run. An array counts once while it or any view of it is held.

    `alive`: their sum in bytes. Code that stores further arrays during the run may `hold` them, too.
    """

    def __init__(self, limits: Limits) -> None:
        self.alive = 0
        self._limits = limits
        self._bound = limits.memory
        self._holders: dict[int, list[int]] = {}

    def require(self, nbytes: int) -> None:
        """Raise LimitExceeded if outputs of `nbytes` bytes would exceed the peak limit."""
        needed = self.alive + nbytes
        if self._bound is not None and needed > self._bound:
            raise self._limits.exceeded("peak_bytes", f"would need {needed} bytes together with all other live values")

    def hold(self, array: Array) -> None:
        """Count an array until it is released."""
        owner = owner_of(array)
        entry = self._holders.get(id(owner))
        if entry is None:
            self._holders[id(owner)] = [1, owner.nbytes]
            self.alive += owner.nbytes
        else:
            entry[0] += 1

    def release(self, array: Array | None) -> None:
        """Remove one reference to an array; None is ignored."""
        if array is None:
            return
        key = id(owner_of(array))
        entry = self._holders[key]
        entry[0] -= 1
        if not entry[0]:
            self.alive -= entry[1]
            del self._holders[key]

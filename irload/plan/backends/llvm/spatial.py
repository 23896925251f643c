"""Spatial axes of the data of convolutions, as they lie in a copy from which every tap reads neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from irload.record import record


@record()
class Spatial:
    """An axis along which `count` outputs read windows: output o and tap k meet at o·step + k·dilation − begin.

    `size` and `stride`: the positions of the data, and the bytes between them. In the copy, positions that differ by a
    multiple of `step` lie beside each other: a phase. Phases that no tap reads are left out at the end.

    `by_tap`: a phase is what one tap reads instead, and nothing else. Outputs of several lines then are neighbours.
    """

    size: int
    stride: int
    count: int
    taps: int = 1
    step: int = 1
    dilation: int = 1
    begin: int = 0
    by_tap: bool = False

    @property
    def phases(self) -> int:
        """The phases of the copy."""
        return self.taps if self.by_tap else max(k * self.dilation % self.step for k in range(self.taps)) + 1

    @property
    def length(self) -> int:
        """The positions of each phase."""
        return self.count if self.by_tap else (self.taps - 1) * self.dilation // self.step + self.count

    @property
    def apart(self) -> int:
        """How many positions of the data lie between phases."""
        return self.dilation if self.by_tap else 1

    @property
    def is_padded(self) -> bool:
        """True where some positions of the copy are beyond the data."""
        last = (self.length - 1) * self.step + (self.phases - 1) * self.apart
        return self.begin > 0 or last - self.begin >= self.size

    def tap(self, k: int) -> tuple[int, int]:
        """The phase that tap k reads, and its position there for output 0."""
        if self.by_tap:
            return k, 0
        position, phase = divmod(k * self.dilation, self.step)
        return phase, position


def each_tap(along: Iterable[Iterable[int]]) -> tuple[int, ...]:
    """The bytes to every tap of a window, from those to the taps along each axis."""
    return tuple(map(sum, product(*along)))

"""The arena: one buffer for all values of a plan, offsets chosen from the times in which they live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The bytes of one buffer and the steps, first and last, between which it must keep its content."""

    size: int
    first: int
    last: int


def place(lifetimes: Mapping[int, Lifetime]) -> tuple[dict[int, int], int]:
    """An offset for every buffer, and the size of the arena.

    The largest buffers come first; each gets the lowest gap between those it shares a moment with.
    """
    offsets: dict[int, int] = {}
    placed: list[tuple[int, int, Lifetime]] = []
    total = 0
    for key in sorted(lifetimes, key=lambda k: (-lifetimes[k].size, lifetimes[k].first)):
        life = lifetimes[key]
        size = -(-life.size // ALIGNMENT) * ALIGNMENT
        at = 0
        for start, end, other in sorted(placed, key=lambda p: p[:2]):
            if other.last < life.first or life.last < other.first:
                continue
            if start - at >= size:
                break
            at = max(at, end)
        offsets[key] = at
        placed.append((at, at + size, life))
        total = max(total, at + size)
    return offsets, total

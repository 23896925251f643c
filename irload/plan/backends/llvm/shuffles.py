"""Permutations of lanes within and between vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irload.plan.backends.llvm.builder import Function, Vec


def transposed(f: Function, rows: Sequence[Vec]) -> list[Vec]:
    """Transpose a square: as many vectors as lanes."""
    lanes, found, half = f.lanes, list(rows), 1
    while half < lanes:
        # Swap the off-diagonal squares of `half` lanes within each square of twice as many.
        low = [k if not k & half else k - half + lanes for k in range(lanes)]
        high = [k + half if not k & half else k + lanes for k in range(lanes)]
        for k in range(lanes):
            if not k & half:
                a, b = found[k], found[k + half]
                found[k], found[k + half] = f.shuffle(a, b, low), f.shuffle(a, b, high)
        half *= 2
    return found


def unzipped(f: Function, vectors: Sequence[Vec]) -> list[Vec]:
    """Deinterleave: a power of 2 of vectors, with as many members, → all first members, all second members, ….

    a₀ b₀ c₀ d₀ a₁ b₁ … in four vectors gives the vectors a, b, c and d.
    """
    groups = [list(vectors)]
    while len(groups[0]) > 1:
        halves = [
            [f.shuffle(a, b, range(odd, 2 * f.lanes, 2)) for a, b in zip(group[::2], group[1::2], strict=True)]
            for odd in (0, 1)
            for group in groups
        ]
        groups = halves
    return [group[0] for group in groups]


def across(f: Function, value: Vec, combine: Callable[[Vec, Vec], Vec], together: int | None = None) -> Vec:
    """Combine all lanes, or each group of `together` lanes (a power of 2); every lane holds the result."""
    half = (together or f.lanes) // 2
    while half:
        value = combine(value, f.shuffle(value, value, [k ^ half for k in range(f.lanes)]))
        half //= 2
    return value


def folded(f: Function, vectors: Sequence[Vec], combine: Callable[[Vec, Vec], Vec]) -> Vec:
    """Combine the lanes of each of as many vectors as lanes: lane k of the result is that of vector k."""
    found, half = list(vectors), f.lanes // 2
    while half:
        kept = [k if not k & half else k + f.lanes for k in range(f.lanes)]
        met = [k ^ half for k in kept]
        found = [
            combine(f.shuffle(a, b, kept), f.shuffle(a, b, met))
            for a, b in zip(found[:half], found[half:], strict=True)
        ]
        half //= 2
    return found[0]

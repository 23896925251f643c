"""Permutations of lanes within and between vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irload.plan.backends.llvm.builder import Function, Vec


def transposed(f: Function, rows: Sequence[Vec]) -> list[Vec]:
    """Transpose a square of `lanes` vectors."""
    lanes, vectors, half = f.lanes, list(rows), 1
    while half < lanes:
        # Swap the off-diagonal squares of `half` lanes within each square of twice as many.
        low = [k if not k & half else k - half + lanes for k in range(lanes)]
        high = [k + half if not k & half else k + lanes for k in range(lanes)]
        for k in range(lanes):
            if not k & half:
                a, b = vectors[k], vectors[k + half]
                vectors[k], vectors[k + half] = f.shuffle(a, b, low), f.shuffle(a, b, high)
        half *= 2
    return vectors


def unzipped(f: Function, vectors: Sequence[Vec]) -> list[Vec]:
    """Deinterleave vectors of structures with as many members as there are vectors, a power of 2.

    Four vectors a₀ b₀ c₀ d₀ a₁ b₁ … result in the vectors a, b, c and d.
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
    """Reduce all lanes, or each group of `together` lanes (a power of 2). The result is in each of these lanes."""
    half = (together or f.lanes) // 2
    while half:
        value = combine(value, f.shuffle(value, value, [k ^ half for k in range(f.lanes)]))
        half //= 2
    return value


def folded(f: Function, vectors: Sequence[Vec], combine: Callable[[Vec, Vec], Vec]) -> Vec:
    """Reduce each of `lanes` vectors to one number. Lane k of the result is the number of vector k."""
    partial, half = list(vectors), f.lanes // 2
    while half:
        near = [k if not k & half else k + f.lanes for k in range(f.lanes)]
        far = [k ^ half for k in near]
        partial = [
            combine(f.shuffle(a, b, near), f.shuffle(a, b, far))
            for a, b in zip(partial[:half], partial[half:], strict=True)
        ]
        half //= 2
    return partial[0]

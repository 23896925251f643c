"""Vectors among each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irload.plan.backends.llvm.builder import Function, Value


def transposed(f: Function, rows: Sequence[Value]) -> list[Value]:
    """As many vectors as there are lanes, as rows of a square → its columns."""
    lanes, found, half = f.lanes, list(rows), 1
    while half < lanes:
        # Swap the off-diagonal squares of `half` lanes within each square of twice as many.
        low = [k if not k & half else k - half + lanes for k in range(lanes)]
        high = [k + half if not k & half else k + lanes for k in range(lanes)]
        for k in range(lanes):
            if not k & half:
                a, b = found[k], found[k + half]
                found[k], found[k + half] = shuffled(f, a, b, low), shuffled(f, a, b, high)
        half *= 2
    return found


def unzipped(f: Function, vectors: Sequence[Value]) -> list[Value]:
    """As many vectors as their lanes have members each, a power of 2 → vectors of all first members, all second ones….

    Members lie beside each other: a₀ b₀ c₀ d₀ a₁ b₁ … in four vectors give those of a, b, c and d.
    """
    groups = [list(vectors)]
    while len(groups[0]) > 1:
        halves = [
            [shuffled(f, a, b, range(odd, 2 * f.lanes, 2)) for a, b in zip(group[::2], group[1::2], strict=True)]
            for odd in (0, 1)
            for group in groups
        ]
        groups = halves
    return [group[0] for group in groups]


def across(f: Function, value: Value, combine: Callable[[Value, Value], Value], together: int | None = None) -> Value:
    """All lanes combined, in every lane; or as many as are `together`, a power of 2, in each of them."""
    half = (together or f.lanes) // 2
    while half:
        value = combine(value, shuffled(f, value, value, [k ^ half for k in range(f.lanes)]))
        half //= 2
    return value


def folded(f: Function, vectors: Sequence[Value], combine: Callable[[Value, Value], Value]) -> Value:
    """As many vectors as there are lanes → one: each lane has all lanes of the vector of its number combined."""
    found, half = list(vectors), f.lanes // 2
    while half:
        kept = [k if not k & half else k + f.lanes for k in range(f.lanes)]
        met = [k ^ half for k in kept]
        found = [
            combine(shuffled(f, a, b, kept), shuffled(f, a, b, met))
            for a, b in zip(found[:half], found[half:], strict=True)
        ]
        half //= 2
    return found[0]


def shuffled(f: Function, a: Value, b: Value, lanes: Sequence[int]) -> Value:
    """One vector of those lanes: of `a` from 0 on, of `b` from the number of lanes on."""
    listed = ", ".join(f"i32 {n}" for n in lanes)
    return f.value(f.vector, f"shufflevector {f.vector} {a}, {f.vector} {b}, {f.integers} <{listed}>")

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
                found[k], found[k + half] = _shuffled(f, a, b, low), _shuffled(f, a, b, high)
        half *= 2
    return found


def across(f: Function, value: Value, combine: Callable[[Value, Value], Value]) -> Value:
    """All lanes combined, in every lane."""
    half = f.lanes // 2
    while half:
        value = combine(value, _shuffled(f, value, value, [k ^ half for k in range(f.lanes)]))
        half //= 2
    return value


def folded(f: Function, vectors: Sequence[Value], combine: Callable[[Value, Value], Value]) -> Value:
    """As many vectors as there are lanes → one: each lane has all lanes of the vector of its number combined."""
    found, half = list(vectors), f.lanes // 2
    while half:
        kept = [k if not k & half else k + f.lanes for k in range(f.lanes)]
        met = [k ^ half for k in kept]
        found = [
            combine(_shuffled(f, a, b, kept), _shuffled(f, a, b, met))
            for a, b in zip(found[:half], found[half:], strict=True)
        ]
        half //= 2
    return found[0]


def _shuffled(f: Function, a: Value, b: Value, lanes: Sequence[int]) -> Value:
    listed = ", ".join(f"i32 {n}" for n in lanes)
    return f.value(f.vector, f"shufflevector {f.vector} {a}, {f.vector} {b}, {f.integers} <{listed}>")

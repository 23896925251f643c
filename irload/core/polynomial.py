"""Polynomials with integer coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Monomial = tuple[int, ...]
"""The factors of a term, as sorted indices of variables, with repetition."""
Terms = Mapping[Monomial, int]
"""The nonzero coefficients by monomial."""
Key = tuple[tuple[Monomial, int], ...]
"""The sorted terms: hashable, and equal for equal polynomials."""


def key_of(terms: Terms) -> Key:
    """The terms in order."""
    return tuple(sorted(terms.items()))


def key_in(encoded: Sequence[tuple[Sequence[int], int]]) -> Key:
    """The key from its form in JSON."""
    return tuple([(tuple(monomial), c) for monomial, c in encoded])


def add(a: Terms, b: Terms, sign: int = 1) -> dict[Monomial, int]:
    """a + sign · b."""
    terms = dict(a)
    for monomial, c in b.items():
        total = terms.get(monomial, 0) + sign * c
        if total:
            terms[monomial] = total
        else:
            del terms[monomial]
    return terms


def multiply(a: Terms, b: Terms) -> dict[Monomial, int]:
    """a · b."""
    terms: dict[Monomial, int] = {}
    for left, c in a.items():
        for right, d in b.items():
            monomial = tuple(sorted((*left, *right)))
            total = terms.get(monomial, 0) + c * d
            if total:
                terms[monomial] = total
            else:
                del terms[monomial]
    return terms


def oriented(terms: Terms) -> Terms:
    """The polynomial or its negative, so that a == b and b == a are the same guard."""
    return terms if not terms or min(terms.items())[1] > 0 else {m: -c for m, c in terms.items()}


def without(monomial: Monomial, factors: Monomial) -> Monomial | None:
    """The monomial divided by `factors`; None if it does not contain all of them."""
    left = list(monomial)
    for k in factors:
        if k not in left:
            return None
        left.remove(k)
    return tuple(left)


def multiple(dividend: Terms, divisor: Terms) -> int | None:
    """The integer n with dividend = n · divisor, None if there is none or it is 0."""
    monomial, c = next(iter(divisor.items()))
    times, rest = divmod(dividend.get(monomial, 0), c)
    return times if not rest and times and add(dividend, divisor, -times) == {} else None

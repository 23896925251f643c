"""Which powers of a softmax count as zero."""

from __future__ import annotations

from math import log

SMALLEST_NORMAL = 2.0**-126
"""The least f32 that is no subnormal number."""


def least_exponent(length: int) -> float:
    """Where e^x begins to count, in a softmax over `length` elements.

    Below, its quotient by their sum may be subnormal. Masks of −100 make such powers by the thousand, and processors
    take a hundred times as long for whatever is computed of them. What is lost is at most `length` · 2⁻¹²⁶ of a sum
    that is 1 or more.
    """
    return log(SMALLEST_NORMAL * max(length, 1))

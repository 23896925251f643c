"""The threshold below which exponentials of a softmax are flushed to zero."""

from __future__ import annotations

from math import log

SMALLEST_NORMAL = 2.0**-126
"""The smallest normal f32."""


def least_exponent(length: int) -> float:
    """Return the threshold of a softmax over `length` elements: eˣ of smaller x is flushed to 0.

    Below it the quotient of eˣ and the row sum may be subnormal. Masks of −100 produce thousands of subnormal
    exponentials, which processors handle a hundred times more slowly. The error of the row sum, which is at least 1, is
    at most `length` · 2⁻¹²⁶.
    """
    return log(SMALLEST_NORMAL * max(length, 1))

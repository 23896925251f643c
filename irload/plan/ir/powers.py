"""The threshold below which exponentials of a softmax are flushed to zero."""

from __future__ import annotations

from math import log

SMALLEST_NORMAL = 2.0**-126
"""The smallest normal f32."""


def least_exponent(length: int) -> float:
    """The smallest x whose e^x is computed in a softmax over `length` elements; smaller ones give 0.

    Below it the quotient of e^x and the row sum may be subnormal. Masks of −100 produce thousands of subnormal
    exponentials, and processors handle them a hundred times more slowly. The error is at most `length` · 2⁻¹²⁶ of a sum
    that is at least 1.
    """
    return log(SMALLEST_NORMAL * max(length, 1))

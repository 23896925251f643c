"""Exact quotients of sizes, for shape arithmetic that exporters perform in floats before they round to integers.

OpenVINO computes these sums, products and quotients in f32 and rounds each. A `Ratio` is the exact value. It is
limited to computations in which rounding changes neither the floor nor the ceiling: at most one quotient that f32
cannot represent, followed by sums with integers. A ratio that is not an integer differs from every integer by at least
1 / `denominator`. Its numerator is below MAX_NUMERATOR, so each rounding changes it by at most a sixteenth of this
distance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irload.core.size import is_size
from irload.core.tensor import Array

MAX_NUMERATOR = 1 << 20
"""Exclusive upper bound of the magnitude of a numerator."""
MAX_DENOMINATOR = 256
"""Maximum denominator."""

MAX_ELEMENTS = 64
"""Maximum number of elements of an array of ratios."""


class Ratio:
    """`numerator` / `denominator`: a size or an integer, divided by a positive integer.

    `rounded`: f32 cannot represent the ratio. Arithmetic raises TypeError if the rounding of floats could change the
    floor or the ceiling of the result.
    """

    __slots__ = ("denominator", "numerator", "rounded")

    def __init__(self, numerator: int, denominator: int = 1, *, rounded: bool = False) -> None:
        if (
            is_size(denominator)
            or not 0 < denominator <= MAX_DENOMINATOR
            or not -MAX_NUMERATOR < numerator < MAX_NUMERATOR
        ):
            raise TypeError("floats may round this number")
        self.numerator, self.denominator, self.rounded = numerator, denominator, rounded

    @staticmethod
    def of(number: Any) -> Ratio:
        """The ratio that equals a size, an integer or a float. Raises TypeError for NaN and infinities."""
        if isinstance(number, Ratio):
            return number
        if is_size(number):
            return Ratio(number)
        if isinstance(number, int | np.integer):
            return Ratio(int(number))
        if not np.isfinite(number):
            raise TypeError(f"{number} is not a ratio")
        return Ratio(*float(number).as_integer_ratio())

    @property
    def is_whole(self) -> bool:
        """True if the denominator is 1."""
        return self.denominator == 1

    def __add__(self, other: Ratio) -> Ratio:
        if (self.rounded and not other.is_whole) or (other.rounded and not self.is_whole):
            raise TypeError("a rounded number is added to a fraction")
        numerator = self.numerator * other.denominator + other.numerator * self.denominator
        return Ratio(numerator, self.denominator * other.denominator, rounded=self.rounded or other.rounded)

    def __neg__(self) -> Ratio:
        return Ratio(-self.numerator, self.denominator, rounded=self.rounded)

    def __sub__(self, other: Ratio) -> Ratio:
        return self + -other

    def __mul__(self, other: Ratio) -> Ratio:
        if self.rounded or other.rounded:
            raise TypeError("a rounded number is multiplied")
        return Ratio(self.numerator * other.numerator, self.denominator * other.denominator)

    def __truediv__(self, other: Ratio) -> Ratio:
        if not is_size(other.numerator) and other.numerator == other.denominator:
            return self
        if self.rounded or is_size(other.numerator) or other.numerator <= 0:
            raise TypeError("a rounded number is divided, or the divisor is not a positive number")
        denominator = self.denominator * other.numerator
        return Ratio(self.numerator * other.denominator, denominator, rounded=bool(denominator & (denominator - 1)))

    def __floor__(self) -> Ratio:
        return Ratio(self.numerator // self.denominator)

    def __ceil__(self) -> Ratio:
        return Ratio(-(-self.numerator // self.denominator))

    def __trunc__(self) -> Any:
        """The ratio rounded towards 0, as a size or an integer."""
        return self.numerator // self.denominator if self.numerator >= 0 else -(-self.numerator // self.denominator)


def ratios(array: Array) -> Array:
    """The elements as ratios. Raises TypeError for more than MAX_ELEMENTS, and for elements that are not ratios."""
    if array.size > MAX_ELEMENTS:
        raise TypeError("too many elements for sizes")
    return each(Ratio.of, array)


def each(function: Callable[[Any], Any], array: Array) -> Array:
    """The results of a function for each element, as an array of objects."""
    return np.asarray(np.frompyfunc(function, 1, 1)(array), object)

"""Quotients of sizes in floats, as exporters compute them before they round to whole numbers.

In f32, sums, products and quotients are rounded. A `Ratio` is the exact number, and exists only where rounding changes
neither its floor nor its ceiling: at most one quotient that f32 does not represent, then sums with whole numbers.
Unless it is whole, it is at least 1 / `under` away from each whole number, and each rounding moves it by at most a
sixteenth of that, as its numerator is below MOST.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irload.core.size import is_size
from irload.core.tensor import Array

MOST = 1 << 20
"""Bound of the numerators."""
MOST_PARTS = 256
"""Bound of the denominators."""

MOST_ELEMENTS = 64
"""Maximum number of elements of an array of ratios."""


class Ratio:
    """`over` / `under`, a size or number over a positive number; `rounded`: f32 does not represent it exactly.

    Arithmetic raises TypeError where floats may round to the other side of a whole number.
    """

    __slots__ = ("over", "rounded", "under")

    def __init__(self, over: int, under: int = 1, *, rounded: bool = False) -> None:
        if is_size(under) or not 0 < under <= MOST_PARTS or not -MOST < over < MOST:
            raise TypeError("floats may round this number")
        self.over, self.under, self.rounded = over, under, rounded

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
        """True for a ratio of 1 part."""
        return self.under == 1

    def __add__(self, other: Ratio) -> Ratio:
        if (self.rounded and not other.is_whole) or (other.rounded and not self.is_whole):
            raise TypeError("a rounded number is added to a fraction")
        over = self.over * other.under + other.over * self.under
        return Ratio(over, self.under * other.under, rounded=self.rounded or other.rounded)

    def __neg__(self) -> Ratio:
        return Ratio(-self.over, self.under, rounded=self.rounded)

    def __sub__(self, other: Ratio) -> Ratio:
        return self + -other

    def __mul__(self, other: Ratio) -> Ratio:
        if self.rounded or other.rounded:
            raise TypeError("a rounded number is multiplied")
        return Ratio(self.over * other.over, self.under * other.under)

    def __truediv__(self, other: Ratio) -> Ratio:
        if not is_size(other.over) and other.over == other.under:
            return self
        if self.rounded or is_size(other.over) or other.over <= 0:
            raise TypeError("a rounded number is divided, or the divisor is not a positive number")
        under = self.under * other.over
        return Ratio(self.over * other.under, under, rounded=bool(under & (under - 1)))

    def __floor__(self) -> Ratio:
        return Ratio(self.over // self.under)

    def __ceil__(self) -> Ratio:
        return Ratio(-(-self.over // self.under))

    def __trunc__(self) -> Any:
        """The whole number next to it in the direction of 0, as a size or a number."""
        return self.over // self.under if self.over >= 0 else -(-self.over // self.under)


def ratios(array: Array) -> Array:
    """The elements as ratios. Raises TypeError, also for more than MOST_ELEMENTS."""
    if array.size > MOST_ELEMENTS:
        raise TypeError("too many elements for sizes")
    return each(Ratio.of, array)


def each(function: Callable[[Any], Any], array: Array) -> Array:
    """The results of a function for each element, as an array of objects."""
    return np.asarray(np.frompyfunc(function, 1, 1)(array), object)

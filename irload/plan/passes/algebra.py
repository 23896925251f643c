"""Normal forms of elementwise expressions, for matching patterns independently of association.

A form is a sum of monomials over atoms. Atoms are unknowns, or functions of other forms. Forms identify values and are
never evaluated, so they do not change rounding. Factors do not cancel, because x/x is not 1 if x is 0, infinite or
NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

Monomial = tuple[tuple[int, float], ...]
"""(atom, exponent), sorted by atom."""

Form = tuple[tuple[Monomial, float], ...]
"""(monomial, coefficient), sorted, without zeros."""

Key = tuple[Any, ...]
"""The identity of an atom: ("unknown", name), ("sum", form) or (function, form…, number…)."""

TERMS = 16
"""The largest number of monomials in a form."""


class NotRepresentable(Exception):
    """Raised if a form would have too many monomials, or would differ from the expression at 0, infinity or NaN."""


class Algebra:
    """Builds forms. Equal atoms have the same number, which is the index of their identity in `keys`."""

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self._numbers: dict[Key, int] = {}

    def atom(self, *key: Any) -> Form:
        """Return the form of one atom."""
        if key not in self._numbers:
            self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return ((((self._numbers[key], 1.0),), 1.0),)

    def number(self, number: float) -> Form:
        """Return the form of a constant."""
        return (((), number),) if number else ()

    def add(self, a: Form, b: Form, factor: float = 1.0) -> Form:
        """Return a + factor · b."""
        total = dict(a)
        for monomial, c in b:
            total[monomial] = total.get(monomial, 0.0) + factor * c
        return _sorted(total)

    def multiply(self, a: Form, b: Form) -> Form:
        """Return a · b, expanded. Raises NotRepresentable if exponents of an atom in a and b might cancel."""
        total: dict[Monomial, float] = {}
        for left, c in a:
            for right, d in b:
                monomial = _joined(left, right)
                total[monomial] = total.get(monomial, 0.0) + c * d
        return _sorted(total)

    def power(self, a: Form, exponent: float) -> Form:
        """Return a raised to the exponent. Squares are expanded; for other exponents, a sum becomes an atom first."""
        if exponent == 2:
            return self.multiply(a, a)
        if not isfinite(exponent):
            raise NotRepresentable
        if len(a) != 1 or not a[0][0] or (exponent != int(exponent) and (a[0][1] != 1 or len(a[0][0]) > 1)):
            a = self.atom("sum", a)
        ((monomial, c),) = a
        if any(e != 1 for _, e in monomial) and exponent != -1:
            raise NotRepresentable
        if not exponent or not 2**-30 < abs(c) ** exponent < 2**30:
            raise NotRepresentable
        return _sorted({tuple((atom, e * exponent) for atom, e in monomial): c**exponent})

    def apply(self, function: str, args: Sequence[Form], numbers: Sequence[float]) -> Form:
        """Return the form of an instruction. A non-arithmetic instruction becomes an atom."""
        a, b = args[0], args[-1]
        match function:
            case "add":
                return self.add(a, b)
            case "subtract":
                return self.add(a, b, -1.0)
            case "multiply":
                return self.multiply(a, b)
            case "divide":
                return self.multiply(a, self.power(b, -1))
            case "add_number":
                return self.add(a, self.number(numbers[0]))
            case "number_subtract":
                return self.add(self.number(numbers[0]), a, -1.0)
            case "multiply_number":
                return self.multiply(a, self.number(numbers[0]))
            case "divide_number" if numbers[0]:
                return self.multiply(a, self.number(1 / numbers[0]))
            case "number_divide":
                return self.multiply(self.number(numbers[0]), self.power(a, -1))
            case "negative":
                return self.multiply(a, self.number(-1))
            case "square":
                return self.power(a, 2)
            case "sqrt":
                return self.power(a, 0.5)
            case "power_number" if numbers[0] == 3:
                return self.multiply(a, self.multiply(a, a))
            case "power_number":
                return self.power(a, numbers[0])
            case _:
                return self.atom(function, *args, *numbers)


def _joined(left: Monomial, right: Monomial) -> Monomial:
    exponents = dict(left)
    for atom, e in right:
        before = exponents.get(atom, 0.0)
        if before and not (before > 0 and e > 0 and before == int(before) and e == int(e)):
            raise NotRepresentable
        exponents[atom] = before + e
    return tuple(sorted(exponents.items()))


def _sorted(total: dict[Monomial, float]) -> Form:
    form = tuple(sorted((m, c) for m, c in total.items() if c))
    if len(form) > TERMS:
        raise NotRepresentable
    return form

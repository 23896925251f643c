"""Normal forms equal their expressions: random expressions are evaluated in both forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irload.plan.passes.algebra import TERMS, Algebra, Form, NotRepresentable

UNARY: dict[str, tuple[Callable[..., float], int]] = {
    "add_number": (lambda x, n: x + n, 1),
    "number_subtract": (lambda x, n: n - x, 1),
    "multiply_number": (lambda x, n: x * n, 1),
    "divide_number": (lambda x, n: x / n, 1),
    "number_divide": (lambda x, n: n / x, 1),
    "negative": (lambda x: -x, 0),
    "square": (lambda x: x * x, 0),
    "sqrt": (lambda x: x**0.5, 0),
    "power_number": (lambda x, n: x**n, 1),
    "exp": (lambda x: np.exp(x), 0),
    "log": (lambda x: np.log(x), 0),
    "tanh": (lambda x: np.tanh(x), 0),
    "relu": (lambda x: max(x, 0.0), 0),
    "maximum_number": (lambda x, n: max(x, n), 1),
    "minimum_number": (lambda x, n: min(x, n), 1),
    "clamp": (lambda x, a, b: min(max(x, a), b), 2),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 0),
}
BINARY: dict[str, Callable[[float, float], float]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "maximum": max,
}


def value(algebra: Algebra, form: Form, unknown: list[float]) -> float:
    """The value of a form for given numbers."""
    total = 0.0
    for monomial, c in form:
        for atom, exponent in monomial:
            c *= atom_value(algebra, algebra.keys[atom], unknown) ** exponent
        total += c
    return total


def atom_value(algebra: Algebra, key: tuple[Any, ...], unknown: list[float]) -> float:
    name, *rest = key
    if name == "unknown":
        return unknown[rest[0]]
    if name == "sum":
        return value(algebra, rest[0], unknown)
    operands = [value(algebra, r, unknown) if isinstance(r, tuple) else r for r in rest]
    return float(BINARY[name](*operands) if name in BINARY else UNARY[name][0](*operands))


@pytest.mark.parametrize("seed", range(60))
def test_a_form_equals_its_expression(seed: int) -> None:
    rng = np.random.default_rng([seed, 12])
    algebra = Algebra()
    unknown = [float(v) for v in rng.uniform(0.4, 2.0, 3)]
    forms = [algebra.atom("unknown", k) for k in range(3)]
    worth = [np.float64(v) for v in unknown]
    with np.errstate(all="ignore"):
        for _ in range(40):
            a, b = (int(k) for k in rng.integers(max(0, len(forms) - 5), len(forms), 2))
            if rng.random() < 0.45:
                function, numbers, args = str(rng.choice(list(BINARY))), [], [a, b]
                exact = BINARY[function](worth[a], worth[b])
            else:
                function, args = str(rng.choice(list(UNARY))), [a]
                plain, count = UNARY[function]
                numbers = sorted(
                    float(n) for n in rng.choice([0.25, 0.5, 1.0, 2.0, 3.0, -1.0, 6.0], count, replace=False)
                )
                exact = plain(worth[a], *numbers)
            if isinstance(exact, complex) or not np.isfinite(exact) or abs(exact) > 1e6 or 0 < abs(exact) < 1e-6:
                continue
            try:
                form = algebra.apply(function, [forms[k] for k in args], numbers)
            except NotRepresentable:
                continue
            result = value(algebra, form, unknown)
            assert np.isclose(float(np.real(result)), exact, rtol=1e-6, atol=1e-9), (function, numbers)
            forms.append(form)
            worth.append(np.float64(exact))
    assert len(forms) > 6


def x_and_algebra() -> tuple[Algebra, Form]:
    algebra = Algebra()
    return algebra, algebra.atom("unknown", 0)


def test_equal_expressions_have_equal_forms() -> None:
    algebra, x = x_and_algebra()
    y = algebra.atom("unknown", 1)
    assert algebra.multiply(algebra.add(x, y), algebra.add(x, y)) == algebra.power(algebra.add(y, x), 2)
    assert algebra.add(x, x, -1.0) == ()
    assert algebra.number(0.0) == ()


def test_factors_do_not_cancel() -> None:
    algebra, x = x_and_algebra()
    inverse = algebra.power(x, -1)
    for a, b in ((x, inverse), (inverse, x), (inverse, inverse), (algebra.power(x, 0.5), algebra.power(x, 0.5))):
        with pytest.raises(NotRepresentable):
            algebra.multiply(a, b)
    assert algebra.multiply(x, x) == algebra.power(x, 2)


def test_forms_with_too_many_terms_are_rejected() -> None:
    algebra = Algebra()
    total: Form = ()
    for k in range(TERMS):
        total = algebra.add(total, algebra.atom("unknown", k))
    assert len(total) == TERMS
    with pytest.raises(NotRepresentable):
        algebra.add(total, algebra.atom("unknown", TERMS))


@pytest.mark.parametrize(("c", "exponent"), [(2.0**29, 1), (2.0**15, -1), (2.0**-29, 1)])
def test_powers_of_factors(c: float, exponent: float) -> None:
    algebra, x = x_and_algebra()
    scaled = algebra.multiply(x, algebra.number(c))
    assert algebra.power(scaled, exponent)[0][1] == c**exponent
    for wrong in (2.0**30, 2.0**-30):
        with pytest.raises(NotRepresentable):
            algebra.power(algebra.multiply(x, algebra.number(wrong)), exponent)
    for wrong in (0, float("inf"), float("-inf"), float("nan")):
        with pytest.raises(NotRepresentable):
            algebra.power(x, wrong)

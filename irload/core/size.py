"""Sizes as expressions over the input dims, so that one plan serves many shapes.

A `Trace` plans a model at one shape, whose dynamic dims are symbols. Sizes computed from them are polynomials over
symbols and floor quotients, together with their value at the traced shape. A comparison that holds for all values of
the symbols is decided by the polynomials; any other is decided at the traced shape, and recorded as a guard. At
shapes for which all guards hold, planning would have taken the same branches, so the plan is the same up to the values
of its sizes.

A size that silently became a plain number would make plans wrong for other shapes. So a `Size` is not an `int`: it has
no `__index__`, `__int__`, `__float__` or hash, and `range`, `np.empty`, `np.array(…, int64)`, dict keys and
`functools.cache` raise TypeError for it. Code that requires a number calls `fixed`, which records that the size is
equal to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from irload.core.polynomial import Key, Monomial, Terms, add, key_of, multiple, multiply, oriented, without
from irload.core.trace import Trace


class _Size:
    """A polynomial over symbols and quotients of its trace. Results of arithmetic that are constant are plain ints."""

    __array_ufunc__ = None
    __hash__ = None
    __slots__ = ("_bounds", "hint", "terms", "trace")

    def __init__(self, trace: Trace, terms: Terms, hint: int) -> None:
        self.trace = trace
        self.terms = terms
        self.hint = hint
        self._bounds: tuple[int | None, int | None] | None = None

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """Bounds for all values of the symbols; None if unbounded."""
        if self._bounds is None:
            self._bounds = self.trace.bounds(self.terms)
        return self._bounds

    @property
    def key(self) -> Key:
        """Equal for equal polynomials of one trace."""
        return key_of(self.terms)

    def __add__(self, other: Any) -> Any:
        if type(other) is int and not other:
            return self
        terms = _terms(other)
        return NotImplemented if terms is None else self._from_terms(add(self.terms, terms, 1), self.hint + hint(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        terms = _terms(other)
        return (
            NotImplemented if terms is None else self._from_terms(add(self.terms, terms, -1), self.hint - hint(other))
        )

    def __rsub__(self, other: Any) -> Any:
        terms = _terms(other)
        return (
            NotImplemented if terms is None else self._from_terms(add(terms, self.terms, -1), hint(other) - self.hint)
        )

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:  # a tenth of the time of `multiply`
            if other == 1:
                return self
            return _Size(self.trace, {m: c * other for m, c in self.terms.items()}, self.hint * other) if other else 0
        terms = _terms(other)
        return (
            NotImplemented if terms is None else self._from_terms(multiply(self.terms, terms), self.hint * hint(other))
        )

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __floordiv__(self, other: Any) -> Any:
        terms = _terms(other)
        return NotImplemented if terms is None else self._divided(self.terms, terms)

    def __rfloordiv__(self, other: Any) -> Any:
        terms = _terms(other)
        return NotImplemented if terms is None else self._divided(terms, self.terms)

    def __mod__(self, other: Any) -> Any:
        terms = _terms(other)
        return NotImplemented if terms is None else self - other * (self // other)

    def __rmod__(self, other: Any) -> Any:
        terms = _terms(other)
        return NotImplemented if terms is None else other - self * (other // self)

    def __divmod__(self, other: Any) -> Any:
        quotient = self // other
        return quotient, self - other * quotient

    def __rdivmod__(self, other: Any) -> Any:
        quotient = other // self
        return quotient, other - self * quotient

    def __bool__(self) -> bool:
        return not self.trace.holds("==", oriented(self.terms))

    def __eq__(self, other: object) -> bool:
        if type(other) is int and self._excludes(other):
            return False
        terms = _terms(other)
        if terms is None:
            return NotImplemented
        return self.trace.holds("==", oriented(add(self.terms, terms, -1)))

    def __lt__(self, other: Any) -> bool:
        terms = _terms(other)
        return NotImplemented if terms is None else self.trace.holds("<", add(self.terms, terms, -1))

    def __gt__(self, other: Any) -> bool:
        terms = _terms(other)
        return NotImplemented if terms is None else self.trace.holds("<", add(terms, self.terms, -1))

    def __le__(self, other: Any) -> bool:
        terms = _terms(other)
        return NotImplemented if terms is None else not self.trace.holds("<", add(terms, self.terms, -1))

    def __ge__(self, other: Any) -> bool:
        terms = _terms(other)
        return NotImplemented if terms is None else not self.trace.holds("<", add(self.terms, terms, -1))

    def _excludes(self, number: int) -> bool:
        """True for a number outside the bounds."""
        low, high = self.bounds
        return (low is not None and number < low) or (high is not None and number > high)

    def __repr__(self) -> str:
        return f"<{self.trace.text(self.terms)}: {self.hint}>"

    def _from_terms(self, terms: Terms, hint: int) -> Any:
        if not terms:
            return 0
        return terms[()] if len(terms) == 1 and () in terms else _Size(self.trace, terms, hint)

    def _divided(self, dividend: Terms, divisor: Terms) -> Any:
        """Return the floor quotient. Terms that the divisor divides exactly are divided as polynomials."""
        if not divisor:
            raise ZeroDivisionError("division by zero")
        if self.trace.holds("==", oriented(divisor)):
            raise ZeroDivisionError("division by zero")
        exact: dict[Monomial, int] = {}
        rest = dict(dividend)
        if len(divisor) == 1:
            ((factors, by),) = divisor.items()
            for monomial, c in dividend.items():
                left = without(monomial, factors)
                if left is not None and c % by == 0:
                    exact[left] = c // by
                    del rest[monomial]
        elif (times := multiple(dividend, divisor)) is not None:
            return times
        if [*rest, *divisor] == [(), ()]:  # both are constants
            exact = add(exact, terms_of(rest[()] // divisor[()]), 1)
        elif rest:
            exact = add(exact, {(self.trace.quotient(rest, divisor),): 1}, 1)
        return self._from_terms(exact, self.trace.value(exact))


if TYPE_CHECKING:
    Size = int
    """Type checkers treat sizes as integers, since they support the same arithmetic and comparisons."""
else:
    Size = _Size


def symbol(trace: Trace, hint: int) -> Size:
    """A new symbol with this value at the traced shape. Raises ValueError outside MIN_SYMBOL to MAX_SYMBOL."""
    size: Any = _Size(trace, trace.variable(hint), hint)
    return size


def size_of(trace: Trace, terms: Terms) -> Size:
    """The size of a polynomial that is not constant."""
    size: Any = _Size(trace, terms, trace.value(terms))
    return size


def is_size(value: object) -> bool:
    """True for a symbolic size, False for a plain number."""
    return isinstance(value, _Size)


def fixed(value: int) -> int:
    """Return the value of a size at the traced shape, and record a guard that the size has this value."""
    if not isinstance(value, _Size):
        return int(value)
    if value != value.hint:
        raise AssertionError("a size differs from its value at the traced shape")
    return value.hint


def number(value: Any) -> int:
    """Return a number of any type as int, and a size unchanged."""
    return value if is_size(value) else int(value)


def hint(value: Any) -> int:
    """Return the value at the traced shape, without a guard: for choices that are valid at every shape."""
    return value.hint if isinstance(value, _Size) else int(value)


def reaches(value: int, least: int) -> bool:
    """Return True for numbers of at least `least`, and for all sizes, without a guard: for thresholds of speed."""
    return isinstance(value, _Size) or value >= least


def largest(a: int, b: int) -> int:
    """The maximum of two numbers or sizes, without a guard."""
    return _extreme("max", a, b)


def smallest(a: int, b: int) -> int:
    """The minimum of two numbers or sizes, without a guard."""
    return _extreme("min", a, b)


def _extreme(of: str, a: Any, b: Any) -> Any:
    size: Any = a if is_size(a) else b
    if not is_size(size):
        return max(a, b) if of == "max" else min(a, b)
    trace: Trace = size.trace
    left, right = terms_of(a), terms_of(b)
    low, high = trace.bounds(add(left, right, -1))
    if low is not None and low >= 0:
        return a if of == "max" else b
    if high is not None and high <= 0:
        return b if of == "max" else a
    return size_of(trace, {(trace.extreme(of, left, right),): 1})


def alike(a: int, b: int) -> bool:
    """True if two sizes are equal for all shapes. Never records a guard."""
    if isinstance(a, _Size) or isinstance(b, _Size):
        return _terms(a) == _terms(b)
    return a == b


def extent(index: slice, size: int) -> tuple[int, int, int]:
    """Return the start, the count and the step of a slice of an axis, as Python resolves it."""
    if not any(isinstance(n, _Size) for n in (size, index.start, index.stop, index.step)):
        indices = range(*index.indices(size))
        return indices.start, len(indices), indices.step
    step = 1 if index.step is None else index.step
    least, most = (-1, size - 1) if step < 0 else (0, size)

    def clamped(end: int | None, default: int) -> int:
        return default if end is None else min(max(end + size if end < 0 else end, least), most)

    start = clamped(index.start, most if step < 0 else least)
    stop = clamped(index.stop, least if step < 0 else most)
    return start, max(-((start - stop) // step), 0), step


def has_sizes(array: NDArray[Any]) -> bool:
    """True for an array of objects with sizes."""
    return array.dtype == object and any(isinstance(v, _Size) for v in array.flat)


class Deferred:
    """A size that is a function of sizes, but not a polynomial. The function raises NotDefined outside its domain."""

    __slots__ = ("function", "sizes")

    def __init__(self, function: Callable[..., Any], sizes: Sequence[Size]) -> None:
        self.function = function
        self.sizes = sizes


class NotDefined(Exception):
    """A deferred function has no value at a shape."""


def applied(function: Callable[[int], int], value: Size) -> Size:
    """Apply a function to a number; for a size, return a Deferred."""
    result: Any = Deferred(function, (value,)) if is_size(value) else function(value)
    return result


def array_of(values: Iterable[Any], dtype: Any) -> NDArray[Any]:
    """A 1-D array of integers of this dtype, or of objects if some of them are sizes."""
    listed = list(values)
    if not any(isinstance(v, _Size) for v in listed):
        return np.array(listed, dtype)
    array = np.empty(len(listed), object)
    array[:] = listed
    return array


def terms_of(value: int) -> Terms:
    """The polynomial of a size or a number."""
    terms = _terms(value)
    if terms is None:
        raise TypeError(f"{value!r} is not an integer")
    return terms


def _terms(value: Any) -> Terms | None:
    if isinstance(value, _Size):
        return value.terms
    if isinstance(value, int | np.integer):
        return {(): int(value)} if value else {}
    return None

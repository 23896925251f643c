"""Traces: the symbols of a planning run, comparisons of polynomials over them, and the guards that these record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from irload.core.polynomial import Key, Terms, key_in, key_of

MIN_SYMBOL = 2
"""Minimum value of a symbol. Dims of 0 and 1 stay numbers, because emptiness and broadcasting depend on them."""
MAX_SYMBOL = 1 << 24
"""Maximum value of a symbol, so that products of a few symbols fit into 64 bits for all shapes."""

_EXTREMES: Mapping[str, Callable[..., Any]] = {"max": max, "min": min}
_RELATIONS: Mapping[str, Callable[[int], bool]] = {"==": lambda n: n == 0, "<": lambda n: n < 0}


Operation = tuple[str, Key, Key]
"""A floor quotient `//`, `max` or `min` of two polynomials."""


class TraceEnded(TypeError):
    """Raised if a closed trace would need a new guard."""


class Trace:
    """The symbols of a planning run, quotients of polynomials over them, and the guards recorded so far.

    Maxima and minima of two polynomials count as quotients.
    """

    def __init__(self) -> None:
        self.hints: list[int] = []
        """The values of symbols and quotients at the traced shape."""
        self.guards: dict[tuple[str, Key], bool] = {}
        """(relation of a polynomial to 0, its terms) → whether it holds."""
        self.symbols = 0
        self.closed = False
        self._quotients: dict[Operation, int] = {}
        self._lows: list[int | None] = []
        self._highs: list[int | None] = []

    def variable(self, hint: int) -> Terms:
        """A new symbol with this value at the traced shape, MIN_SYMBOL to MAX_SYMBOL. Symbols precede quotients."""
        if len(self.hints) != self.symbols or not MIN_SYMBOL <= hint <= MAX_SYMBOL:
            raise ValueError(f"cannot add a symbol for {hint}")
        self.symbols += 1
        return {(self._atom(hint, MIN_SYMBOL, MAX_SYMBOL),): 1}

    def quotient(self, dividend: Terms, divisor: Terms) -> int:
        """The index of the floor quotient of two polynomials; the divisor is not 0."""
        key = ("//", key_of(dividend), key_of(divisor))
        index = self._quotients.get(key)
        if index is None:
            (low, high), (least, most) = self.bounds(dividend), self.bounds(divisor)
            positive = low is not None and low >= 0 and least is not None and least > 0
            lower = low // most if positive and low is not None and most else 0 if positive else None
            upper = high // least if positive and high is not None and least else None
            if len(key[2]) == 1 and key[2][0][0] == () and key[2][0][1] > 0:  # a constant divisor
                by = key[2][0][1]
                lower, upper = (None if n is None else n // by for n in (low, high))
            hint = self.value(dividend) // self.value(divisor)
            index = self._quotients[key] = self._atom(hint, lower, upper)
        return index

    def extreme(self, of: str, a: Terms, b: Terms) -> int:
        """The index of the `max` or `min` of two polynomials."""
        first, second = sorted((key_of(a), key_of(b)))
        key = (of, first, second)
        index = self._quotients.get(key)
        if index is None:
            choose = _EXTREMES[of]
            lows, highs = zip(self.bounds(a), self.bounds(b), strict=True)
            either, both = (lows, highs) if of == "max" else (highs, lows)
            near = choose([n for n in either if n is not None], default=None)
            far = None if None in both else choose(both)
            low, high = (near, far) if of == "max" else (far, near)
            index = self._quotients[key] = self._atom(choose(self.value(a), self.value(b)), low, high)
        return index

    def value(self, terms: Terms) -> int:
        """The value of a polynomial at the traced shape."""
        return sum(c * prod([self.hints[k] for k in monomial]) for monomial, c in terms.items())

    def bounds(self, terms: Terms) -> tuple[int | None, int | None]:
        """Bounds of a polynomial for all values of the symbols; None if unbounded."""
        low: int | None = 0
        high: int | None = 0
        for monomial, c in terms.items():
            lows, highs = [self._lows[k] for k in monomial], [self._highs[k] for k in monomial]
            least = most = None
            if all(n is not None and n >= 0 for n in lows):
                least = prod([n for n in lows if n is not None])
                most = None if None in highs else prod([n for n in highs if n is not None])
            elif len(monomial) == 1:
                least, most = lows[0], highs[0]
            if c < 0:
                least, most = most, least
            low = None if low is None or least is None else low + c * least
            high = None if high is None or most is None else high + c * most
        return low, high

    def holds(self, relation: str, terms: Terms) -> bool:
        """Return whether a polynomial is == 0 or < 0. If that depends on the shape, record the answer as a guard."""
        low, high = self.bounds(terms)
        if low is not None and low > 0:
            return False
        if relation == "<":
            if high is not None and high < 0:
                return True
            if low is not None and low >= 0:
                return False
        elif high is not None and (high < 0 or (low == 0 and high == 0)):
            return high == 0
        key = relation, key_of(terms)
        answer = self.guards.get(key)
        if answer is None:
            if self.closed:
                raise TraceEnded(f"{self.text(terms)} {relation} 0 was not decided while the plan was traced")
            answer = self.guards[key] = _RELATIONS[relation](self.value(terms))
        return answer

    def close(self) -> None:
        """Allow no further guards."""
        self.closed = True

    def described(self) -> Mapping[str, Any]:
        """The symbols, quotients and guards as JSON."""
        return {
            "symbols": self.symbols,
            "hints": self.hints,
            "bounds": [self._lows, self._highs],
            "quotients": [[of, a, b, k] for (of, a, b), k in self._quotients.items()],
            "guards": [[relation, key, holds] for (relation, key), holds in self.guards.items()],
        }

    @staticmethod
    def of(document: Mapping[str, Any]) -> Trace:
        """An open trace from a document that `described` returned."""
        trace = Trace()
        trace.symbols, trace.hints = document["symbols"], document["hints"]
        trace._lows, trace._highs = document["bounds"]
        trace._quotients = {(of, key_in(a), key_in(b)): k for of, a, b, k in document["quotients"]}
        trace.guards = {(relation, key_in(key)): holds for relation, key, holds in document["guards"]}
        return trace

    def at(self, symbols: Sequence[int]) -> Trace:
        """An open trace with the same symbols and quotients at another shape, without guards."""
        trace = Trace()
        trace.symbols, trace.hints = self.symbols, list(symbols)
        trace._lows, trace._highs = self._lows.copy(), self._highs.copy()
        trace._quotients = self._quotients.copy()
        for of, a, b in trace._quotients:
            values = trace.value(dict(a)), trace.value(dict(b))
            trace.hints.append(_EXTREMES[of](values) if of != "//" else values[0] // values[1] if values[1] else 0)
        return trace

    def text(self, terms: Terms) -> str:
        """A polynomial as Python source over s0, s1, … and the quotients q…."""

        def name(k: int) -> str:
            return f"s{k}" if k < self.symbols else f"q{k}"

        source = "+".join("*".join([f"({c})", *map(name, m)]) for m, c in sorted(terms.items()))
        return source.replace("(1)*", "") or "0"

    def compiled(self, polynomials: Sequence[Terms]) -> Callable[[Sequence[int]], list[int]]:
        """A function from the values of the symbols to the values of these polynomials."""
        needed: set[int] = set()
        for terms in polynomials:
            self._collect(terms, needed)
        return self._function(needed, self._listed(polynomials))

    def guarded(self, polynomials: Sequence[Terms]) -> Callable[[Sequence[int]], list[int] | None]:
        """Return a function from values of the symbols to values of these polynomials, or to None if a guard fails."""
        return self._tested(polynomials, self._listed(polynomials), None)

    def test(self) -> Callable[[Sequence[int]], bool]:
        """Return a function from the values of the symbols to True if all guards hold."""
        return self._tested((), "return True", False)

    def _tested(self, polynomials: Sequence[Terms], result: str, fails: bool | None) -> Callable[[Sequence[int]], Any]:
        """A function that returns `fails` if a guard does not hold."""
        needed: set[int] = set()
        conditions = [f"{MIN_SYMBOL} <= s{k} <= {MAX_SYMBOL}" for k in range(self.symbols)]
        for (relation, key), expected in self.guards.items():
            self._collect(dict(key), needed)
            conditions.append(f"({self.text(dict(key))} {relation} 0) is {expected}")
        plain = [c for c in conditions if "q" not in c]
        rest = [c for c in conditions if "q" in c]
        early = f"if not ({' and '.join(plain) or 'True'}): return {fails}\n "
        late = f"if not ({' and '.join(rest)}): return {fails}\n " if rest else ""
        tested = needed.copy()
        for terms in polynomials:
            self._collect(terms, needed)
        assignments = "".join(f"{line}\n " for line in self._lines(needed - tested))
        function = self._function(tested, f"{late}{assignments}{result}", early)

        def guarded(symbols: Sequence[int]) -> Any:
            try:
                return function(symbols)
            except ZeroDivisionError:  # the traced code computes this quotient only if the guards hold
                return fails

        return guarded

    def _listed(self, polynomials: Sequence[Terms]) -> str:
        return f"return [{', '.join(map(self.text, polynomials))}]"

    def _atom(self, hint: int, low: int | None, high: int | None) -> int:
        self.hints.append(hint)
        self._lows.append(low)
        self._highs.append(high)
        return len(self.hints) - 1

    def _collect(self, terms: Terms, needed: set[int]) -> None:
        """Add the quotients that a polynomial depends on."""
        operations = list(self._quotients)
        left = [terms]
        while left:
            for k in {k for monomial in left.pop() for k in monomial if k >= self.symbols} - needed:
                needed.add(k)
                _, a, b = operations[k - self.symbols]
                left += [dict(a), dict(b)]

    def _lines(self, needed: Iterable[int]) -> list[str]:
        """The assignments of quotients."""
        operations = list(self._quotients)
        lines: list[str] = []
        for k in sorted(needed):
            of, *keys = operations[k - self.symbols]
            a, b = (self.text(dict(key)) for key in keys)
            lines.append(f"q{k} = ({a}) // ({b})" if of == "//" else f"q{k} = {of}({a}, {b})")
        return lines

    def _function(self, needed: Iterable[int], result: str, early: str = "") -> Callable[[Sequence[int]], Any]:
        lines = [f"[{', '.join(f's{k}' for k in range(self.symbols))}] = s", *([early] if early else [])]
        lines += self._lines(needed)
        scope: dict[str, Any] = {}
        body = "\n ".join([*lines, result])
        exec(f"def f(s):\n {body}", scope)
        return scope["f"]

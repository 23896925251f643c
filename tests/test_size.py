"""Sizes: arithmetic as on integers, guards that reproduce every branch, and no silent loss of a symbol."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irload.core.shape import Dim, Shape
from irload.core.size import alike, array_of, extent, fixed, has_sizes, is_size, number, symbol, terms_of
from irload.core.trace import MIN_SYMBOL, Trace, TraceEnded
from tests.harness.tiers import tiered

Numbers = list[int]
Built = Callable[[list[Any]], Any]

SYMBOLS = st.lists(st.integers(MIN_SYMBOL, 60), min_size=2, max_size=2)
CONSTANTS = st.integers(-9, 9)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> Built:
    """A function from two numbers, or sizes, to one; all its branches depend on comparisons of sizes."""
    kind = (
        draw(st.sampled_from(["symbol", "constant", "binary", "divide", "mod", "choose", "least"]))
        if depth
        else "symbol"
    )
    if kind == "symbol":
        k = draw(st.integers(0, 1))
        return lambda s: s[k]
    if kind == "constant":
        c = draw(CONSTANTS)
        return lambda s: c
    a, b = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    if kind == "binary":
        apply = draw(st.sampled_from([operator.add, operator.sub, operator.mul]))
        return lambda s: apply(a(s), b(s))
    if kind in ("divide", "mod"):
        apply = operator.floordiv if kind == "divide" else operator.mod
        divisor = draw(st.sampled_from([1, 2, 3, 7, -4])) if draw(st.booleans()) else None
        return lambda s: apply(a(s), divisor if divisor is not None else abs(b(s)) + 1)
    if kind == "least":
        return lambda s: max(min(a(s), b(s)), -5)
    compare = draw(st.sampled_from([operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]))
    return lambda s: a(s) if compare(a(s), b(s)) else b(s) - a(s)


@settings(max_examples=tiered(150, 400), deadline=None)
@given(expressions(), SYMBOLS, st.lists(SYMBOLS, min_size=3, max_size=3))
def test_a_traced_function_gives_the_same_wherever_its_guards_hold(
    function: Built, at: Numbers, others: list[Numbers]
) -> None:
    trace = Trace()
    symbols = [symbol(trace, n) for n in at]
    traced = function(symbols)
    assert number_at(traced) == function(list(at))
    trace.close()
    evaluate, holds = trace.compiled([terms_of(traced)]), trace.test()
    assert holds(at)
    for values in (at, *others):
        if holds(values):
            assert evaluate(values) == [function(list(values))]


def number_at(size: Any) -> int:
    return size.hint if is_size(size) else size


def test_guards_fail_where_a_quotient_has_no_value() -> None:
    """x // abs(y // 3 - 2) for y // 3 > 2; at y = 6 the divisor is zero."""
    trace = Trace()
    x, y = symbol(trace, 12), symbol(trace, 12)
    assert x // abs(y // 3 - 2) > 1
    trace.close()
    holds = trace.test()
    assert holds([12, 12])
    assert not holds([12, 6])


@settings(max_examples=tiered(100, 300), deadline=None)
@given(
    st.integers(MIN_SYMBOL, 40),
    st.integers(MIN_SYMBOL, 40),
    st.integers(MIN_SYMBOL, 40),
    st.integers(-5, 50),
    st.data(),
)
def test_slices_of_a_symbolic_axis(size: int, other: int, third: int, end: int, data: st.DataObject) -> None:
    step = data.draw(st.sampled_from([1, 2, -1, -3, None]))
    start = data.draw(st.sampled_from([None, 0, 1, -1, -7, end]))
    stop = data.draw(st.sampled_from([None, end, -2, 1000]))
    trace = Trace()
    length = extent(slice(start, stop, step), symbol(trace, size))
    trace.close()
    evaluate, holds = trace.compiled(list(map(terms_of, length))), trace.test()
    for n in (size, other, third):
        positions = range(*slice(start, stop, step).indices(n))
        if holds([n]):
            assert evaluate([n]) == [positions.start, len(positions), positions.step]


def test_equal_expressions_are_equal_without_a_guard() -> None:
    trace = Trace()
    n, m = symbol(trace, 12), symbol(trace, 5)
    assert (n + m) * (n - m) == n * n - m * m
    assert (n * 12 * 64) // n == 768
    assert (4 * n + 6) // 2 == 2 * n + 3
    assert (n * m * 6) // (2 * m) == 3 * n
    assert (2 * n + 2 * m) // (n + m) == 2
    assert n * 8 % 4 == 0
    assert [n - n, n * 0] == [0, 0]
    assert type(n - n + 3) is int
    before = len(trace.guards)
    assert n + 1 != n
    assert n > 1
    assert n >= 2
    assert not n < 2
    assert n
    assert n * m > 3
    assert max(n, 1) is n
    assert len(trace.guards) == before


def test_guards() -> None:
    trace = Trace()
    n = symbol(trace, 10)
    assert n <= 512
    assert n != 12
    assert n % 2 == 0
    holds = trace.test()
    assert [holds([k]) for k in (10, 12, 11, 512, 514, 4, 1)] == [True, False, False, True, False, True, False]


def test_a_closed_trace_decides_no_more() -> None:
    trace = Trace()
    n = symbol(trace, 10)
    assert n < 20
    trace.close()
    assert n < 20
    with pytest.raises(TraceEnded):
        assert n < 19


def test_fixed_sizes_are_guarded() -> None:
    trace = Trace()
    n = symbol(trace, 10)
    assert fixed(n * 2) == 20
    assert type(fixed(n)) is int
    assert fixed(7) == 7
    assert [trace.test()([k]) for k in (10, 11)] == [True, False]


@pytest.mark.parametrize(
    "lose",
    [
        lambda n: int(n),
        lambda n: float(n),
        lambda n: range(n),
        lambda n: [0] * n,
        lambda n: [1, 2, 3][n],
        lambda n: [1, 2, 3][:n],
        lambda n: hash(n),
        lambda n: {n: 1},
        lambda n: {n},
        lambda n: cache(lambda k: k)(n),
        lambda n: np.empty(n),
        lambda n: np.zeros((2, n)),
        lambda n: np.array([n], np.int64),
        lambda n: np.array([1, n]).astype(np.int64),
        lambda n: np.arange(n),
        lambda n: np.ones((4, 4)).reshape(n, -1),
        lambda n: np.int64(3) * np.ones(3) * n,
        lambda n: np.broadcast_to(np.ones(1), (n,)),
        lambda n: n / 2,
        lambda n: n * 1.5,
        lambda n: n**0.5,
        lambda n: round(n),
        lambda n: hash(Dim(n, n)),
        lambda n: hash(Shape(n, 3)),
        lambda n: f"{n:d}",
        lambda n: bytes(n),
        lambda n: np.float32(n),
        lambda n: divmod(n, 2.0),
    ],
)
def test_losing_a_symbol_raises(lose: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        lose(symbol(Trace(), 3))


def test_numpy_scalars_are_numbers() -> None:
    n = symbol(Trace(), 3)
    assert is_size(np.int64(2) + n)
    assert is_size(n * np.int32(2))
    assert alike(np.int64(2) * n, n + n)
    assert np.int64(1) < n


def test_arrays_and_shapes_of_sizes() -> None:
    trace = Trace()
    n = symbol(trace, 3)
    mixed = array_of([1, n], np.int64)
    assert has_sizes(mixed)
    assert array_of([1, 2], np.int32).dtype == np.int32
    assert not has_sizes(np.array(["a"], object))
    shape = Shape(2, n * 2)
    assert shape.is_static
    assert alike(shape.size.size, 4 * n)
    assert number(shape.static[1]) is shape.static[1]
    assert Shape(n) == Shape(n)
    assert not trace.guards


def test_unknown_operands_are_refused() -> None:
    n = symbol(Trace(), 3)
    with pytest.raises(TypeError):
        n + "1"
    assert n != "3"
    with pytest.raises(ZeroDivisionError):
        n // (n - n)
    with pytest.raises(ValueError, match="symbol"):
        symbol(Trace(), 1)

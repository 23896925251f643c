"""The measures of growth distinguish linear from quadratic work."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.harness.growth import FACTOR, LINEAR, calls, growth


def linear(size: int) -> Callable[[], object]:
    return lambda: [len(str(k)) for k in range(20 * size)]


def quadratic(size: int) -> Callable[[], object]:
    return lambda: [sum(range(size)) for _ in range(size)]


def test_growth() -> None:
    assert growth(linear, 4000) < LINEAR < growth(quadratic, 4000)


@pytest.mark.parametrize(("work", "expected"), [(linear, 1), (quadratic, 1)])
def test_calls_are_counted_alike_each_time(work: Callable[[int], Callable[[], object]], expected: float) -> None:
    few, many = calls(work(100)), calls(work(100 * FACTOR))
    assert few == calls(work(100))
    assert many / few / FACTOR == pytest.approx(expected, rel=0.1)

"""Ratios of sizes round as the same arithmetic in f32."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

from irload.core.ratio import MAX_NUMERATOR, Ratio, ratios
from irload.core.size import symbol
from irload.core.trace import Trace

OPERATIONS = (operator.add, operator.sub, operator.mul, operator.truediv)
NUMBERS = (1, 2, 3, 5, 7, 10, 12, 100, 255, 0.5, 0.25, 1.5, 2.0, 1 / 16, 0.1)


def test_random_chains_round_as_in_f32() -> None:
    rng = np.random.default_rng(0)
    count = 0
    for _ in range(20_000):
        start = int(rng.integers(1, (200, 5000, MAX_NUMERATOR)[int(rng.integers(3))]))
        exact, single = Ratio(start), np.float32(start)
        try:
            for _ in range(int(rng.integers(1, 7))):
                apply, number = OPERATIONS[int(rng.integers(4))], NUMBERS[int(rng.integers(len(NUMBERS)))]
                exact, single = apply(exact, Ratio.of(number)), np.float32(apply(single, np.float32(number)))
        except TypeError:
            continue
        count += 1
        rounded = math.floor(exact).numerator, math.ceil(exact).numerator, math.trunc(exact)
        assert rounded == (math.floor(single), math.ceil(single), math.trunc(float(single))), (start, single)
    assert count > 5000


@pytest.mark.parametrize("size", [7, 9, 24_000])
def test_ratios_of_a_symbol(size: int) -> None:
    trace = Trace()
    frames = (Ratio.of(symbol(trace, size)) - Ratio(3)) / Ratio(5) + Ratio(1)
    assert math.trunc(math.ceil(frames)).hint == math.ceil((size - 3) / 5) + 1
    assert math.trunc(math.floor(frames)).hint == (size - 3) // 5 + 1


@pytest.mark.parametrize(
    "refused",
    [
        lambda: Ratio(10) / Ratio(3) * Ratio(3),
        lambda: Ratio(10) / Ratio(3) / Ratio(2),
        lambda: Ratio(10) / Ratio(3) + Ratio(1, 2),
        lambda: Ratio(10) / Ratio(0),
        lambda: Ratio(10) / Ratio(-2),
        lambda: Ratio(MAX_NUMERATOR),
        lambda: Ratio(1 - MAX_NUMERATOR) - Ratio(1),
        lambda: Ratio.of(0.1),
        lambda: Ratio.of(math.nan),
        lambda: Ratio.of(math.inf),
    ],
)
def test_numbers_that_floats_may_round_are_refused(refused) -> None:
    with pytest.raises(TypeError):
        refused()


def test_arrays_keep_their_shape() -> None:
    assert ratios(np.ones((2, 1), np.float32)).shape == (2, 1)
    with pytest.raises(TypeError, match="too many elements"):
        ratios(np.ones(65, np.float32))

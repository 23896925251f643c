"""Views as data agree with NumPy's views of arrays, through random chains of them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.views import seen
from irload.plan.ir.strides import Strided, View

KINDS = ("reshape", "transpose", "slice", "broadcast")


def factors(n: int, rng: random.Random) -> tuple[int, ...]:
    """A random shape of n elements."""
    divisors: list[int] = [0, 2] if not n else []
    while n > 1:
        divisors.append(rng.choice([k for k in (2, 3, 4, 6, n) if n % k == 0]))
        n //= divisors[-1]
    rng.shuffle(divisors)
    for _ in range(rng.randint(0, 2)):
        divisors.insert(rng.randint(0, len(divisors)), 1)
    return tuple(divisors)


def random_view(array: Array, rng: random.Random) -> View:
    """A random view of an array."""
    kind = rng.choice(KINDS)
    if kind == "reshape":
        return View("reshape", factors(array.size, rng))
    if kind == "transpose":
        return View("transpose", tuple(rng.sample(range(array.ndim), array.ndim)))
    if kind == "broadcast":
        wide = tuple(5 if n == 1 and rng.random() < 0.5 else n for n in array.shape)
        return View("broadcast", (2,) * rng.randint(0, 1) + wide)
    ends = [sorted((rng.randint(0, n), rng.randint(0, n))) for n in array.shape]
    slices = [slice(*e) if rng.random() < 0.7 else slice(None, None, rng.choice((-1, -2, 2))) for e in ends]
    ranges = [range(*s.indices(n)) for s, n in zip(slices, array.shape, strict=True)]
    return View("slice", ranges=tuple((r.start, len(r), r.step) for r in ranges))


@pytest.mark.parametrize("seed", range(20))
def test_chains_of_views(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        shape = tuple(rng.choice((1, 2, 3, 4, 6)) if rng.random() < 0.97 else 0 for _ in range(rng.randint(0, 4)))
        base = np.arange(int(np.prod(shape)))
        array, views, before = base.reshape(shape), list[View](), Strided.dense(shape)
        for _ in range(4):
            view = random_view(array, rng)
            strides, strided = seen(array, view), view.of(before)
            assert (strides is None) == (strided is None), (shape, views, view)
            if strides is None or strided is None:
                break
            assert strided.shape == strides.shape
            if strides.size:
                again = as_strided(base[strided.offset :], strided.shape, [8 * s for s in strided.strides])
                np.testing.assert_array_equal(again, strides)
            array, views, before = strides, [*views, view], strided


def test_a_dense_tensor_in_any_order() -> None:
    assert Strided.dense((2, 3, 4)).strides == (12, 4, 1)
    assert Strided.dense((2, 3, 4), (0, 2, 1)).strides == (12, 1, 3)
    assert Strided.dense(()).strides == ()

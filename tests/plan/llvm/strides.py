"""Memory of any strides, for tests of kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.program import Value
from tests.plan.llvm.harness import guarded


def strided(rng: np.random.Generator) -> Callable[[Value, Array], Array]:
    """Returns a function that allocates memory of the same shape with permuted axes, some reversed, some with gaps."""

    def lay(value: Value, plain: Array) -> Array:
        order = rng.permutation(plain.ndim)
        gaps = [int(rng.choice([1, 1, 1, 2, 3])) for _ in order]
        sizes = [(plain.shape[k] - 1) * gaps[k] + 1 for k in order]
        array = guarded(sizes, value.dtype, at_end=bool(rng.random() < 0.5)).transpose(np.argsort(order))
        for k in range(plain.ndim):
            index = [slice(None)] * plain.ndim
            index[k] = slice(None, None, -gaps[k] if rng.random() < 0.2 else gaps[k])
            array = array[tuple(index)]
        return array

    return lay

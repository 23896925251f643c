"""Random cases of attention."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.harness.case import Array, Case, Input, Random, cases, const, param
from tests.harness.material import pick, random_array, random_shape


def _batches(rng: Random, full: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Batch axes of query, key and value that broadcast to `full`; the query has all of them."""
    thin = rng.random() < 0.25
    return [full, *(tuple(1 if thin and rng.random() < 0.5 else n for n in full) for _ in range(2))]


def _mask(rng: Random, batch: tuple[int, ...], length: int, source: int, element: et.ElementType) -> Input:
    """A scalar, or a float or boolean mask that keeps at least one key of each row."""
    if rng.random() < 0.1:
        return const(np.zeros((), element.dtype), element)
    rank = int(rng.integers(0, len(batch) + 1))
    shape = (*(1 if rng.random() < 0.5 else n for n in batch[len(batch) - rank :]), pick(rng, (1, length)), source)
    if rng.random() < 0.5:
        values: Array = rng.random(shape) < 0.7
        values[..., 0] = True
        return param(values, et.boolean)
    return param(random_array(rng, shape, element), element)


@cases("ScaledDotProductAttention", "opset13")
def attention(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f32, et.f16, et.bf16))
    batch = random_shape(rng, (1, 3), 1, 3)
    length, source, embedding, width = (int(n) for n in rng.integers(1, 7, 4))
    query, key, value = _batches(rng, batch)

    def random_param(*shape: int) -> Input:
        return param(random_array(rng, shape, element, -2, 2), element)

    inputs = [
        random_param(*query, length, embedding),
        random_param(*key, source, embedding),
        random_param(*value, source, width),
    ]
    count = int(rng.integers(0, 4))
    if count:
        inputs.append(_mask(rng, batch, length, source, element))
    if count > 1:
        scale = random_array(rng, pick(rng, ((), (1,))), element, 0.2, 1.5)
        inputs.append(pick(rng, (const, param))(scale, element))
    if count > 2:
        shape = (*(1 if rng.random() < 0.5 else n for n in batch), pick(rng, (1, length)), 1)
        inputs.append(param(random_array(rng, shape, element), element))
    return Case("ScaledDotProductAttention", version, inputs, {"causal": rng.random() < 0.3}, oracle="cpu")

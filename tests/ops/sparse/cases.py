"""Random cases of the sparse family."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.harness.case import Case, Input, Random, cases, const, param
from tests.harness.material import INDICES, pick, random_array, random_shape

VALUES = (et.f32, et.f32, et.i32, et.u8)


def table_of(rng: Random, element: et.ElementType) -> Input:
    """An embedding table of some rows; values are whole numbers so that sums are exact."""
    shape = (int(rng.integers(1, 6)), *random_shape(rng, (1, 2), 1, 3))
    return param(random_array(rng, shape, et.i32, -3 if element.is_signed else 0, 3).astype(element.dtype), element)


def optional(
    rng: Random, table: Input, index: et.ElementType, weights_shape: tuple[int, ...], least: int = -1
) -> list[Input]:
    """The optional inputs: default_index, `least` or more, then per_sample_weights."""
    roll = rng.random()
    if roll < 0.4:
        return []
    default = const(rng.integers(least, len(table.value)), index)
    if roll < 0.7:
        return [default]
    weights = random_array(rng, weights_shape, et.i32, 0, 3).astype(table.element.dtype)
    return [default, param(weights, table.element)]


@cases("EmbeddingBagOffsetsSum", "opset3")
@cases("EmbeddingBagOffsets", "opset15")
def offsets(rng: Random, version: str) -> Case:
    index, table = pick(rng, INDICES), table_of(rng, pick(rng, VALUES))
    sizes = rng.integers(0, 4, int(rng.integers(1, 5)))
    sizes[-1] = max(sizes[-1], 1)  # the reference rejects an offset after the last index
    count = int(sizes.sum())
    starts = np.cumsum(sizes) - sizes
    indices = param(rng.integers(0, len(table.value), count), index)
    inputs = [table, indices, pick(rng, (const, param))(starts, index), *optional(rng, table, index, (count,))]
    if version == "opset3":
        return Case("EmbeddingBagOffsetsSum", version, inputs)
    reduction = "mean" if len(inputs) < 5 and rng.random() < 0.5 else pick(rng, ("sum", None))
    return Case("EmbeddingBagOffsets", version, inputs, {"reduction": reduction} if reduction else {})


@cases("EmbeddingBagPackedSum", "opset3")
@cases("EmbeddingBagPacked", "opset15")
def packed(rng: Random, version: str) -> Case:
    index, table = pick(rng, INDICES), table_of(rng, pick(rng, VALUES))
    shape = random_shape(rng, 2, 1, 4)
    inputs = [table, param(rng.integers(0, len(table.value), shape), index)]
    if rng.random() < 0.5:
        inputs.append(param(random_array(rng, shape, et.i32, 0, 3).astype(table.element.dtype), table.element))
    if version == "opset3":
        return Case("EmbeddingBagPackedSum", version, inputs)
    reduction = "mean" if len(inputs) < 3 and rng.random() < 0.5 else pick(rng, ("sum", None))
    return Case("EmbeddingBagPacked", version, inputs, {"reduction": reduction} if reduction else {})


@cases("EmbeddingSegmentsSum", "opset3")
def segments(rng: Random, version: str) -> Case:
    index, table = pick(rng, INDICES), table_of(rng, pick(rng, VALUES))
    count, bags = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    inputs = [
        table,
        param(rng.integers(0, len(table.value), count), index),
        param(np.sort(rng.integers(0, bags, count)), index),
        pick(rng, (const, param))(np.asarray(bags), index),
        *optional(rng, table, index, (count,), 0),  # the CPU plugin reads row −1 of the table
    ]
    return Case("EmbeddingSegmentsSum", version, inputs)


@cases("SparseFillEmptyRows", "opset16")
def fill_empty_rows(rng: Random, version: str) -> Case:
    index, element = pick(rng, INDICES), pick(rng, (*VALUES, et.f16, et.i64))
    rows, columns = (int(n) for n in rng.integers(1, 6, 2))
    count = int(rng.integers(1, rows * columns + 1))
    places = rng.permutation(rows * columns)[:count]
    indices = np.stack(np.divmod(places, columns), 1)
    known = pick(rng, (const, param))
    inputs = [
        param(random_array(rng, (count,), element), element),
        pick(rng, (const, const, param))([rows, columns], index),
        known(indices, index),
        param(random_array(rng, (), element), element),
    ]
    return Case("SparseFillEmptyRows", version, inputs, outputs=3)

"""Random cases of one-hot encoding and CTC."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core import element as et
from tests.harness.case import Array, Case, Random, cases, const, param
from tests.harness.material import FLOATS, INDICES, INTEGERS, pick, random_array, random_shape


@cases("OneHot", "opset1", "opset16")
def one_hot(rng: Random, version: str) -> Case:
    shape = random_shape(rng, (0, 3))
    depth, element = int(rng.integers(0 if rng.random() < 0.1 else 1, 6)), pick(rng, (*FLOATS, *INTEGERS, et.boolean))
    index = pick(rng, (et.i32, et.i64, et.i64, et.u8, et.i8))
    low = -depth - 1 if version == "opset16" else -1
    attributes: dict[str, Any] = {"axis": int(rng.integers(-len(shape) - 1, len(shape) + 1))}
    if version == "opset16" and rng.random() < 0.7:
        attributes["negative_indices_mode"] = pick(rng, ("normalize", "ignore_negative"))
    indices, on, off = random_array(rng, shape, index, low, depth), *random_array(rng, (2,), element)
    inputs = [
        param(indices, index),
        pick(rng, (const, const, param))(np.array(depth), pick(rng, INDICES)),
        pick(rng, (const, param))(on, element),
        const(off, element),
    ]
    # OpenVINO has no kernel for other types of indices.
    expected = None if index in INDICES else [_marked(indices, depth, on, off, attributes)]
    return Case("OneHot", version, inputs, attributes, expected=expected)


def _marked(indices: Array, depth: int, on: Any, off: Any, attributes: dict[str, Any]) -> Array:
    """OneHot, one index at a time."""
    result = np.full((*indices.shape, depth), off)
    for at, value in np.ndenumerate(indices.astype(int)):
        place = value + depth if value < 0 and attributes.get("negative_indices_mode") == "normalize" else value
        if 0 <= place < depth:
            result[(*at, place)] = on
    return np.moveaxis(result, -1, attributes["axis"])


def _scores(rng: Random, shape: tuple[int, ...], element: et.ElementType) -> Array:
    """Class scores without ties, in which some classes have the largest score at consecutive time steps."""
    order = np.argsort(rng.random(shape), -1)
    return (order + rng.uniform(0, 0.5, shape[:1] + (1,) * (len(shape) - 1))).astype(element.dtype)


@cases("CTCGreedyDecoder", "opset1")
def greedy(rng: Random, version: str) -> Case:
    time, batch, classes = int(rng.integers(1, 9)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    element = pick(rng, (et.f32, et.f16))
    lengths = rng.integers(0, time + 1, batch)
    mask = np.arange(time)[:, None] < lengths
    inputs = [param(_scores(rng, (time, batch, classes), element), element), param(mask, element)]
    attributes = {"ctc_merge_repeated": bool(rng.random() < 0.5)} if rng.random() < 0.8 else {}
    return Case("CTCGreedyDecoder", version, inputs, attributes)


@cases("CTCGreedyDecoderSeqLen", "opset6")
def greedy_with_lengths(rng: Random, version: str) -> Case:
    batch, time, classes = int(rng.integers(1, 4)), int(rng.integers(1, 9)), int(rng.integers(1, 5))
    element, index = pick(rng, (et.f32, et.f16)), pick(rng, INDICES)
    inputs = [
        param(_scores(rng, (batch, time, classes), element), element),
        param(rng.integers(0, time + 1, batch), index),
    ]
    if rng.random() < 0.6:
        inputs.append(pick(rng, (const, param))(np.full(pick(rng, ((), (1,))), rng.integers(0, classes)), index))
    attributes = {"merge_repeated": bool(rng.random() < 0.5)}
    for name in ("classes_index_type", "sequence_length_type"):
        if rng.random() < 0.6:
            attributes[name] = pick(rng, INDICES)
    return Case("CTCGreedyDecoderSeqLen", version, inputs, attributes, outputs=2)


@cases("CTCLoss", "opset4")
def loss(rng: Random, version: str) -> Case:
    batch, time, classes = int(rng.integers(1, 4)), int(rng.integers(2, 7)), int(rng.integers(2, 6))
    lengths = rng.integers(2, time + 1, batch)
    # OpenVINO reads out of bounds if labels cannot be aligned, so there are few labels, with room for blanks.
    counts = np.array([int(rng.integers(1, (n + 1) // 2 + 1)) for n in lengths])
    index = pick(rng, INDICES)
    blank = int(rng.integers(0, classes)) if rng.random() < 0.6 else classes - 1
    others = [c for c in range(classes) if c != blank]
    labels = np.asarray(others)[rng.integers(0, len(others), (batch, time))]
    inputs = [
        param(random_array(rng, (batch, time, classes), et.f32, -2, 2), et.f32),
        param(lengths, index),
        param(labels, index),
        param(counts, index),
    ]
    if blank != classes - 1 or rng.random() < 0.3:
        inputs.append(const(np.array(blank), index))
    names = ("preprocess_collapse_repeated", "ctc_merge_repeated", "unique")
    attributes = {name: bool(rng.random() < 0.5) for name in names}
    return Case("CTCLoss", version, inputs, attributes, rtol=1e-4, atol=1e-4)

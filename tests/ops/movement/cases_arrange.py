"""Random cases: tensors permuted, joined, cut and repeated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.harness.case import Case, Random, cases
from tests.harness.material import pick, random_shape
from tests.ops.movement.material import ANY_ELEMENT, data, index, signed, some_shape


@cases("Transpose", "opset1")
def transpose(rng: Random, version: str) -> Case:
    shape = some_shape(rng, (0, 5))
    order = rng.permutation(len(shape)) if rng.random() < 0.8 else []
    # For an empty order OpenVINO treats data of unknown rank as a scalar.
    operand = replace(data(rng, shape), static_shape=not len(order))
    return Case("Transpose", version, [operand, index(rng, order)])


@cases("Concat", "opset1")
def concat(rng: Random, version: str) -> Case:
    shape = random_shape(rng, (1, 4))
    axis = int(rng.integers(len(shape)))
    element = pick(rng, ANY_ELEMENT)
    parts = [
        data(rng, (*shape[:axis], int(rng.integers(0 if rng.random() < 0.1 else 1, 4)), *shape[axis + 1 :]), element)
        for _ in range(rng.integers(1, 5))
    ]
    return Case("Concat", version, parts, {"axis": signed(rng, axis, len(shape))})


@cases("Split", "opset1")
def split(rng: Random, version: str) -> Case:
    shape = list(some_shape(rng, (1, 4), empty=False))
    axis, parts = int(rng.integers(len(shape))), int(rng.integers(1, 5))
    shape[axis] *= parts
    place = index(rng, signed(rng, axis, len(shape)))
    return Case("Split", version, [data(rng, tuple(shape)), place], {"num_splits": parts}, outputs=parts)


@cases("VariadicSplit", "opset1")
def variadic_split(rng: Random, version: str) -> Case:
    shape = list(some_shape(rng, (1, 4), empty=False))
    axis = int(rng.integers(len(shape)))
    lengths = rng.integers(1, 4, rng.integers(1, 5))
    shape[axis] = int(lengths.sum())
    if rng.random() < 0.5:
        lengths[rng.integers(len(lengths))] = -1
    place = signed(rng, axis, len(shape))
    inputs = [
        data(rng, tuple(shape)),
        index(rng, [place] if rng.random() < 0.3 else place),
        index(rng, lengths, constant=rng.random() < 0.8),
    ]
    return Case("VariadicSplit", version, inputs, outputs=len(lengths))


@cases("Broadcast", "opset1", "opset3")
def broadcast(rng: Random, version: str) -> Case:
    mode = pick(rng, ["numpy", "explicit", "bidirectional" if version == "opset3" else "pdpd"])
    target = some_shape(rng, (1, 4), empty=False)  # the reference crashes for empty shapes
    if mode == "explicit":
        kept = sorted(rng.permutation(len(target))[: rng.integers(1, len(target) + 1)].tolist())
        shape = tuple(1 if rng.random() < 0.3 else target[k] for k in kept)
        attributes = {} if version == "opset1" and rng.random() < 0.3 else {"mode": "explicit"}
        return Case("Broadcast", version, [data(rng, shape), index(rng, target), index(rng, kept)], attributes)
    if mode == "pdpd":  # OpenVINO requires axes, but ignores them
        start = pick(rng, [0, int(rng.integers(len(target)))])
        shape = tuple(1 if rng.random() < 0.4 else n for n in target[start:])
        target = tuple(1 if rng.random() < 0.2 else n for n in target)
        attributes = {"mode": "pdpd"} | ({"mode.auto_broadcast_axis": pick(rng, [start, -1])} if start else {})
        return Case("Broadcast", version, [data(rng, shape), index(rng, target), index(rng, [0])], attributes)
    start = int(rng.integers(len(target) + 1))
    shape = tuple(1 if rng.random() < 0.4 else n for n in target[start:])
    if mode == "bidirectional":
        target = tuple(1 if rng.random() < 0.3 else n for n in target)
        shape, target = (target, shape) if shape and rng.random() < 0.3 else (shape, target)
    return Case("Broadcast", version, [data(rng, shape), index(rng, target)], {"mode": mode})


@cases("Tile", "opset1")
def tile(rng: Random, version: str) -> Case:
    shape = some_shape(rng, (0, 4), empty=False)  # the reference crashes for empty shapes
    repeats = rng.integers(1, 4, rng.integers(1, 5))
    return Case("Tile", version, [data(rng, shape), index(rng, np.asarray(repeats))])

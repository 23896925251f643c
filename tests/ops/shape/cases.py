"""Random cases of the shape family."""

from __future__ import annotations

import numpy as np

from tests.harness.case import Case, Random, cases
from tests.harness.material import pick
from tests.ops.movement.material import data, index, signed, some_shape


@cases("ShapeOf", "opset1", "opset3")
def shape_of(rng: Random, version: str) -> Case:
    attributes = {"output_type": pick(rng, ["i32", "i64"])} if version == "opset3" else {}
    return Case("ShapeOf", version, [data(rng, some_shape(rng, (0, 5)))], attributes)


@cases("Reshape", "opset1")
def reshape(rng: Random, version: str) -> Case:
    shape = some_shape(rng, (0, 5))
    special = 0 not in shape and rng.random() < 0.5
    target = list(shape)
    for _ in range(int(rng.integers(0, 4))):  # merge neighbours, split dims, insert ones
        at = int(rng.integers(len(target) + 1))
        if at + 1 < len(target) and rng.random() < 0.5:
            target[at : at + 2] = [target[at] * target[at + 1]]
        elif at < len(target) and target[at] == 4:
            target[at : at + 1] = [2, 2]
        else:
            target.insert(at, 1)
    if special:
        target = [0 if k < len(shape) and n == shape[k] and rng.random() < 0.4 else n for k, n in enumerate(target)]
    if target and np.prod(shape) and rng.random() < 0.6:
        target[int(rng.integers(len(target)))] = -1
    return Case("Reshape", version, [data(rng, shape), index(rng, target)], {"special_zero": special})


@cases("Squeeze", "opset1", "opset15")
def squeeze(rng: Random, version: str) -> Case:
    shape = tuple(1 if rng.random() < 0.4 else n for n in some_shape(rng, (0, 5)))
    ones = [k for k, n in enumerate(shape) if n == 1]
    attributes = {"allow_axis_skip": bool(rng.random() < 0.5)} if version == "opset15" and rng.random() < 0.8 else {}
    inputs = [data(rng, shape)]
    if ones and rng.random() < 0.75:
        named = rng.choice(ones, rng.integers(1, len(ones) + 1)).tolist()  # may repeat
        if attributes.get("allow_axis_skip"):
            named.append(int(rng.integers(len(shape))))
        axes = [signed(rng, k, len(shape)) for k in named]
        inputs.append(index(rng, axes[0] if len(axes) == 1 and rng.random() < 0.5 else axes))
    elif rng.random() < 0.2:
        inputs.append(index(rng, []))
    return Case("Squeeze", version, inputs, attributes)


@cases("Unsqueeze", "opset1")
def unsqueeze(rng: Random, version: str) -> Case:
    shape = some_shape(rng, (0, 4))
    count = int(rng.integers(1, 4))
    rank = len(shape) + count
    axes = [signed(rng, int(k), rank) for k in rng.permutation(rank)[:count]]
    return Case("Unsqueeze", version, [data(rng, shape), index(rng, axes[0] if count == 1 else axes)])

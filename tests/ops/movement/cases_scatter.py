"""Random cases: slices and elements replaced."""

from __future__ import annotations

import numpy as np

from irload.core.element import f32, f64, i32, i64, u8
from tests.harness.case import Case, Random, cases
from tests.harness.material import pick, random_shape
from tests.ops.movement.material import ANY_ELEMENT, data, index, signed


@cases("ScatterUpdate", "opset3")
def scatter_update(rng: Random, version: str) -> Case:
    shape = random_shape(rng, (1, 4))
    element = pick(rng, ANY_ELEMENT)
    axis = int(rng.integers(len(shape)))
    count = int(rng.integers(1, shape[axis] + 1))
    at = rng.permutation(shape[axis])[:count]
    if count % 2 == 0 and rng.random() < 0.5:
        at = at.reshape(2, -1)
    updates = data(rng, (*shape[:axis], *at.shape, *shape[axis + 1 :]), element)
    place = index(rng, signed(rng, axis, len(shape)), constant=True)
    inputs = [data(rng, shape, element), index(rng, at), updates, place]
    return Case("ScatterUpdate", version, inputs, oracle="cpu-first")  # the reference is wrong (see deviations)


@cases("ScatterElementsUpdate", "opset3", "opset12")
def scatter_elements(rng: Random, version: str) -> Case:
    shape = random_shape(rng, (1, 4))
    axis = int(rng.integers(len(shape)))
    attributes: dict[str, object] = {}
    if version == "opset12":
        attributes = {
            "reduction": pick(rng, ["none", "sum", "prod", "min", "max", "mean"]),
            "use_init_val": bool(rng.random() < 0.7),
        }
    reduces = attributes.get("reduction", "none") != "none"
    element = pick(rng, (f32, f64, i32, i64, u8) if reduces else ANY_ELEMENT)
    part = tuple(int(rng.integers(1, n + 1)) for n in shape)
    size = shape[axis]
    at = (
        rng.integers(0, size, part)
        if reduces
        else np.argsort(rng.random((*part[:axis], size, *part[axis + 1 :])), axis)
    )
    at = at.take(range(part[axis]), axis)
    if version == "opset12" and rng.random() < 0.4:
        at = np.where(rng.random(part) < 0.5, at - size, at)
    inputs = [data(rng, shape, element), index(rng, at), data(rng, part, element)]
    inputs.append(index(rng, signed(rng, axis, len(shape)), constant=True))
    return Case("ScatterElementsUpdate", version, inputs, attributes)


@cases("ScatterNDUpdate", "opset4", "opset15")
def scatter_nd(rng: Random, version: str) -> Case:
    shape = random_shape(rng, (1, 4))
    depth = int(rng.integers(1, len(shape) + 1))
    attributes = {}
    if version == "opset15" and rng.random() < 0.8:
        attributes = {"reduction": pick(rng, ["none", "sum", "sub", "prod", "min", "max"])}
    reduces = attributes.get("reduction", "none") != "none"
    element = pick(rng, (f32, f64, i32, i64, u8) if reduces else ANY_ELEMENT)
    places = np.stack(np.unravel_index(rng.permutation(int(np.prod(shape[:depth]))), shape[:depth]), -1)
    count = int(rng.integers(1, len(places) + 1))
    rows = places[rng.integers(len(places), size=count)] if reduces else places[:count]
    rows = rows.reshape(2, -1, depth) if count % 2 == 0 and rng.random() < 0.4 else rows
    updates = data(rng, (*rows.shape[:-1], *shape[depth:]), element)
    return Case("ScatterNDUpdate", version, [data(rng, shape, element), index(rng, rows), updates], attributes)

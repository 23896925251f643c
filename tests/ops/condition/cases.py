"""Random cases of the conditions."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.harness.case import Case, Random, cases, const, param
from tests.harness.material import FLOATS, INDICES, INTEGERS, pick, random_array, random_shape

BUCKETIZED = (et.f32, et.f16, et.i32, et.i64, et.u8, et.i8)


@cases("Select", "opset1")
def select(rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, *INTEGERS, et.boolean))
    mode = pick(rng, [None, "numpy", "none", "pdpd"])
    attributes = {} if mode is None else {"auto_broadcast": mode}
    full = random_shape(rng, (0, 4))

    def thinned() -> tuple[int, ...]:
        start = int(rng.integers(0, len(full) + 1)) if rng.random() < 0.3 else 0
        return tuple(1 if rng.random() < 0.3 else n for n in full)[start:]

    shapes = [full if mode in ("none", "pdpd") else thinned() for _ in range(3)]
    if mode == "pdpd" and full:
        start = int(rng.integers(0, len(full)))
        part = full[start : int(rng.integers(start, len(full))) + 1]
        shapes = [part, full, part]
        at_end = start + len(part) == len(full)
        if start or (at_end and rng.random() < 0.5):
            attributes["auto_broadcast.auto_broadcast_axis"] = "-1" if at_end and rng.random() < 0.5 else str(start)
    make = pick(rng, (param, param, const))
    inputs = [make(random_array(rng, shapes[0], et.boolean))]
    inputs += [param(random_array(rng, s, element), element) for s in shapes[1:]]
    return Case("Select", version, inputs, attributes)


@cases("NonZero", "opset3")
def nonzero(rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, *INTEGERS, et.boolean))
    data = random_array(rng, random_shape(rng, (0, 4), 0 if rng.random() < 0.2 else 1, 4), element, -1, 2)
    data = np.where(rng.random(data.shape) < 0.4, np.zeros((), data.dtype), data)
    attributes = {} if rng.random() < 0.3 else {"output_type": pick(rng, INDICES)}
    # The reference does not set the indices of a single element with several axes.
    oracle = "cpu" if data.size == 1 and data.ndim > 1 else "both"
    return Case("NonZero", version, [param(data, element)], attributes, oracle=oracle)


@cases("Bucketize", "opset3")
def bucketize(rng: Random, version: str) -> Case:
    element, of_buckets = pick(rng, BUCKETIZED), pick(rng, BUCKETIZED)
    buckets = np.sort(random_array(rng, (int(rng.integers(0, 7)),), of_buckets, -3, 3))
    data = random_array(rng, random_shape(rng, (0, 4)), element)
    if buckets.size and rng.random() < 0.5:  # exactly on the boundaries
        data = buckets[rng.integers(0, buckets.size, data.shape)].astype(element.dtype)
    attributes = {"output_type": pick(rng, INDICES)}
    if rng.random() < 0.7:
        attributes["with_right_bound"] = bool(rng.random() < 0.5)
    make = pick(rng, (const, param))
    return Case("Bucketize", version, [param(data, element), make(buckets, of_buckets)], attributes)

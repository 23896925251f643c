"""Random cases of the conditions."""

from __future__ import annotations

from irload.core import element as et
from tests.harness.case import (
    FLOATS,
    INTEGERS,
    Case,
    Random,
    cases,
    const,
    param,
    pick,
    random_array,
    random_shape,
)


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

"""Random cases of the data-movement family."""

from __future__ import annotations

from tests.harness.case import Case, Random, cases, const, param
from tests.harness.material import FLOATS, INDICES, INTEGERS, pick, random_array, random_shape


@cases("Pad", "opset1", "opset12")
def pad(rng: Random, version: str) -> Case:
    mode = pick(rng, ["constant", "edge", "reflect", "symmetric"])
    element = pick(rng, (*FLOATS, *INTEGERS))
    shape = random_shape(rng, (1, 4), 2, 5)
    most = {"constant": 4, "edge": 4, "reflect": 1, "symmetric": 2}[mode]
    least = -1 if version == "opset12" and mode == "constant" else 0
    begin, end = rng.integers(least, most + 1, (2, len(shape)))
    index = pick(rng, INDICES)
    make = pick(rng, (const, const, param))
    inputs = [param(random_array(rng, shape, element), element), make(begin, index), make(end, index)]
    if mode == "constant" and rng.random() < 0.5:
        inputs.append(param(random_array(rng, (), element), element))
    return Case("Pad", version, inputs, {"pad_mode": mode})

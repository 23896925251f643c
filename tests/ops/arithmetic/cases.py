"""Random cases of the arithmetic family."""

from __future__ import annotations

from functools import partial

from tests.harness.case import (
    FLOATS,
    INTEGERS,
    Case,
    Random,
    broadcastable,
    cases,
    param,
    pick,
    random_array,
)


def binary(type: str, rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, *INTEGERS))
    return Case(type, version, [param(random_array(rng, s, element), element) for s in broadcastable(rng)])


for _type in ("Add", "Subtract", "Multiply"):
    cases(_type, "opset1")(partial(binary, _type))

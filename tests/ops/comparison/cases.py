"""Random cases of comparisons and classifications."""

from __future__ import annotations

from functools import partial

import numpy as np

from irload.core import element as et
from tests.harness.case import Case, Random, cases, param
from tests.harness.material import FLOATS, INTEGERS, pick, random_array, random_shape
from tests.ops.arithmetic.cases import WIDE, operands


def comparison(type: str, rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, *INTEGERS, et.boolean))
    # OpenVINO swaps the operands of Greater and GreaterEqual before auto_broadcast pdpd aligns them.
    pdpd = element in WIDE and not type.startswith("Greater")
    inputs, attributes = operands(rng, element, -2, 2, pdpd=pdpd)
    if element is et.f32 and inputs[0].value.size and rng.random() < 0.3:
        inputs[0].value.flat[0] = pick(rng, (np.nan, np.inf, -np.inf))
    return Case(type, version, inputs, attributes)


for _type in ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"):
    cases(_type, "opset1")(partial(comparison, _type))


def classification(type: str, rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f16, et.bf16))
    x = random_array(rng, random_shape(rng, (0, 4), 0), element)
    special = rng.choice([np.nan, np.inf, -np.inf], x.shape)
    x = np.where(rng.random(x.shape) < 0.5, special.astype(x.dtype), x)
    attributes: dict[str, object] = {}
    if type == "IsInf":
        names = [n for n in ("detect_negative", "detect_positive") if rng.random() < 0.7]
        attributes = {n: bool(rng.integers(2)) for n in names}
    return Case(type, version, [param(x, element)], attributes)


for _type in ("IsFinite", "IsInf", "IsNaN"):
    cases(_type, "opset10")(partial(classification, _type))

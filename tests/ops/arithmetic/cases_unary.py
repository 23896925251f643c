"""Random cases of unary arithmetic."""

from __future__ import annotations

from functools import partial

from tests.harness.case import Case, Random, cases, param
from tests.harness.material import FLOATS, INDICES, INTEGERS, pick, random_array, random_shape

DOMAINS = {
    "Acos": (-1, 1),
    "Asin": (-1, 1),
    "Atanh": (-1, 1),
    "Acosh": (1, 9),
    "Sqrt": (0, 9),
    "Log": (1, 9),
    "ErfInv": (-1, 1),
}
"""The domains of real functions; outside, floats give NaN everywhere, but integers depend on the processor."""


def unary(type: str, rng: Random, version: str, elements: tuple[object, ...] = FLOATS) -> Case:
    element = pick(rng, elements)
    low, high = DOMAINS.get(type, (-4, 4))
    return Case(type, version, [param(random_array(rng, random_shape(rng, (0, 4), 0), element, low, high), element)])


# The reference computes integers of 32 and 64 bits; the CPU plugin, which computes the others, rounds differently.
WIDE = tuple(e for e in INTEGERS if e.bits >= 32)

for _type in ("Abs", "Sign", "Ceiling", "Floor"):
    cases(_type, "opset1")(partial(unary, _type, elements=(*FLOATS, *INTEGERS)))
cases("Negative", "opset1")(partial(unary, "Negative", elements=(*FLOATS, *INDICES)))
for _type in ("Exp", "Sqrt", "Log", "Erf", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh"):
    cases(_type, "opset1")(partial(unary, _type, elements=(*FLOATS, *WIDE)))
for _type in ("Asinh", "Acosh", "Atanh"):
    cases(_type, "opset4")(partial(unary, _type, elements=(*FLOATS, *WIDE)))


@cases("ErfInv", "opset17")
def erf_inv(rng: Random, version: str) -> Case:
    case = unary("ErfInv", rng, version)
    # OpenVINO's approximation is off by half a percent near 1.
    return Case("ErfInv", version, case.inputs, rtol=6e-3)


@cases("Round", "opset5")
def round_(rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, *INDICES))
    x = random_array(rng, random_shape(rng, (0, 4), 0), element)
    x = (x * 2).round().astype(x.dtype) / x.dtype.type(2) if element.is_float and rng.random() < 0.5 else x
    return Case("Round", version, [param(x, element)], {"mode": pick(rng, ("half_to_even", "half_away_from_zero"))})

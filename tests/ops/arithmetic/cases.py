"""Random cases of binary arithmetic."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from tests.harness.case import Case, Input, Random, cases, const, param
from tests.harness.material import FLOATS, INDICES, INTEGERS, broadcastable, pick, random_array, random_shape

# Ranges of values. Narrow integers saturate on the CPU plugin, so their results must be small.
RANGES = {"Power": (0, 3)}
WIDE = (et.f32, et.i32, et.i64, et.u32, et.u64)
REFERENCE = {"SquaredDifference": (et.f32,), "Mod": (et.i32, et.i64, et.u32, et.u64)}
"""Element types of the reference kernels, which test auto_broadcast pdpd: the CPU plugin does not support it."""


def operands(
    rng: Random, element: ElementType, low: float = -4, high: float = 4, *, pdpd: bool = True
) -> tuple[list[Input], dict[str, Any]]:
    """Two inputs that broadcast under a random `auto_broadcast`, and the attributes of that mode."""
    make = pick(rng, (param, param, const))
    roll = rng.random()
    if roll < 0.7:
        shapes = broadcastable(rng)
        attributes: dict[str, Any] = {"auto_broadcast": "numpy"} if rng.random() < 0.3 else {}
    elif roll < 0.85 or not pdpd:
        shape = random_shape(rng, (0, 4), 0)
        shapes, attributes = (shape, shape), {"auto_broadcast": "none"}
        make = param  # the CPU plugin reshapes constants of rank 0, whose shape then differs from the other operand's
    else:
        shapes, attributes = aligned(rng)
    a, b = (random_array(rng, s, element, low, high) for s in shapes)
    return [param(a, element), make(b, element)], attributes


def aligned(rng: Random) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], dict[str, Any]]:
    """Shapes for auto_broadcast pdpd: the axes of b are consecutive axes of a."""
    full = random_shape(rng, (1, 4))
    start = int(rng.integers(0, len(full)))
    stop = int(rng.integers(start, len(full))) + 1
    attributes: dict[str, Any] = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": start}
    if stop == len(full) and rng.random() < 0.5:
        attributes["auto_broadcast.auto_broadcast_axis"] = -1
    inner = tuple(1 if rng.random() < 0.2 else n for n in full[start:stop])
    return (full, inner), attributes


def binary(type: str, rng: Random, version: str) -> Case:
    # Only the CPU plugin computes SquaredDifference of integers; it saturates narrow and unsigned types.
    element = pick(rng, (*FLOATS, *(INDICES if type == "SquaredDifference" else INTEGERS)))
    inputs, attributes = operands(rng, element, *RANGES.get(type, (-4, 4)), pdpd=element in REFERENCE.get(type, WIDE))
    return Case(type, version, inputs, attributes)


for _type in ("Add", "Subtract", "Multiply", "SquaredDifference", "Maximum", "Minimum", "Power"):
    cases(_type, "opset1")(partial(binary, _type))


def division(type: str, rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, *INTEGERS))
    # Only the CPU plugin divides narrow integers, and it truncates for both values of m_pythondiv.
    low = -20 if element.is_float or element.bits >= 32 else 0
    inputs, attributes = operands(rng, element, low, 20, pdpd=element in REFERENCE.get(type, WIDE))
    divisor = inputs[1].value
    divisor = divisor + (divisor == 0).astype(divisor.dtype) if element.is_integer else divisor
    inputs = [inputs[0], Input(divisor, element, inputs[1].constant)]
    if element is et.f32 and attributes.get("auto_broadcast") != "pdpd" and rng.random() < 0.3:  # exact multiples
        inputs[0] = param(np.float32(rng.integers(-9, 10)) * divisor, element)
    return Case(type, version, inputs, attributes)


for _type in ("Mod", "FloorMod"):
    cases(_type, "opset1")(partial(division, _type))


@cases("Divide", "opset1")
def divide(rng: Random, version: str) -> Case:
    case = division("Divide", rng, version)
    floored = pick(rng, (True, False, None))
    return (
        case if floored is None else Case("Divide", version, case.inputs, {**case.attributes, "m_pythondiv": floored})
    )


@cases("CumSum", "opset3")
def cum_sum(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.i32, et.i64, et.f16, et.bf16, et.f64))
    shape = random_shape(rng, (1, 4), 0)
    # The axis is optional in the specification, but OpenVINO's reader requires it.
    axis = int(rng.integers(-len(shape), len(shape)))
    data = random_array(rng, shape, element)
    if element.is_low_precision:  # the reference rounds each partial sum; sums of integers are exact
        data = np.round(data)
    inputs = [
        param(data, element),
        pick(rng, (const, param))(axis, pick(rng, INDICES)),
    ]
    flags = [n for n in ("exclusive", "reverse") if rng.random() < 0.7]
    return Case("CumSum", version, inputs, {n: bool(rng.integers(2)) for n in flags})


@cases("SegmentMax", "opset16")
def segment_max(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f16, et.bf16, et.i32, et.i64))
    shape = random_shape(rng, (1, 4))
    ids = np.sort(rng.integers(0, 5, shape[0]))
    make, index = pick(rng, (const, param)), pick(rng, INDICES)
    inputs = [param(random_array(rng, shape, element), element), make(ids, index)]
    if rng.random() < 0.6:
        inputs.append(pick(rng, (const, param))(max(int(ids[-1]) + int(rng.integers(-1, 4)), 0), index))
    # Only the CPU plugin computes SegmentMax. It stores i64 as i32 and 16-bit floats as f32, and fills with the lowest
    # values of these types.
    fills = ("ZERO", "LOWEST", "zero") if element.bits == 32 else ("zero",)
    return Case("SegmentMax", version, inputs, {"fill_mode": pick(rng, fills)})

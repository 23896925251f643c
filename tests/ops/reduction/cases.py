"""Random cases of the reductions."""

from __future__ import annotations

from functools import partial

import numpy as np

from irload.core import element as et
from tests.harness.case import Array, Case, Input, Random, cases, const, param
from tests.harness.material import INDICES, pick, random_array, random_shape

INTEGERS = (et.i32, et.i64, et.u32, et.u64)
NARROW = (et.i8, et.u8, et.i16, et.u16)
FLOATS = (et.f32, et.f16, et.bf16, et.f64)
REFERENCED = {"ReduceL1": (*FLOATS[:3], et.i32, et.i64), "ReduceL2": FLOATS[:3]}
"""The types for which the reference has kernels; for other types FLOATS[:3] and INTEGERS."""


def axes_of(rng: Random, rank: int, *, referenced: bool = True) -> Input:
    """Some axes: a list, or a scalar for a single axis; counted from either end; a constant or a runtime input.

    Without a reference kernel, there is at least one axis and it is a constant, as the CPU plugin requires.
    """
    count = int(rng.integers(0 if referenced else 1, rank + 1))
    axes = rng.permutation(rank)[:count] - rank * rng.integers(0, 2, count)
    value = axes[0] if count == 1 and rng.random() < 0.3 else axes
    return pick(rng, (const, const, param) if referenced else (const,))(np.asarray(value), pick(rng, INDICES))


def values(rng: Random, type: str, shape: tuple[int, ...], element: et.ElementType) -> Array:
    """Values whose sums and products are exact in narrow types, in any order."""
    if element.is_low_precision and type == "ReduceProd":
        return rng.choice([-1, 0.5, 1, 2], shape).astype(element.dtype)
    if element.is_low_precision or element in NARROW:
        # Only the CPU plugin has kernels for narrow integers. It saturates, so the values must not overflow.
        low, high = (0, 1) if type == "ReduceL2" else (-1, 1)
        return random_array(rng, shape, et.i32, 0 if not element.is_signed else low, high).astype(element.dtype)
    return random_array(rng, shape, element)


def arithmetic(type: str, rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, *INTEGERS, *NARROW))
    referenced = element in REFERENCED.get(type, (*FLOATS[:3], *INTEGERS))
    shape = random_shape(rng, (0 if referenced else 1, 4), 1, 4)
    if element in FLOATS[:3] and rng.random() < 0.1:
        shape = tuple(n * int(rng.integers(0, 2)) for n in shape)
    axes = axes_of(rng, len(shape), referenced=referenced)
    attributes = {"keep_dims": bool(rng.integers(0, 2))} if rng.random() < 0.8 else {}
    data = values(rng, type, shape, element)
    if element is et.f32 and type in ("ReduceMax", "ReduceMin") and rng.random() < 0.3:
        data[rng.random(shape) < 0.7] = pick(rng, (np.inf, -np.inf))
    if type in ("ReduceL1", "ReduceL2") and not axes.value.size:
        data = np.abs(data)  # without axes OpenVINO computes absolute values, the specification the identity
    return Case(type, version, [param(data, element), axes], attributes, rtol=1e-4, atol=1e-4)


def logical(type: str, rng: Random, version: str) -> Case:
    shape = random_shape(rng, (0, 4), 1, 4)
    attributes = {"keep_dims": bool(rng.integers(0, 2))} if rng.random() < 0.8 else {}
    data = param(rng.random(shape) < pick(rng, (0.2, 0.8)), et.boolean)
    return Case(type, version, [data, axes_of(rng, len(shape))], attributes)


for _type in ("ReduceSum", "ReduceProd", "ReduceMean", "ReduceMax", "ReduceMin"):
    cases(_type, "opset1")(partial(arithmetic, _type))
for _type in ("ReduceL1", "ReduceL2"):
    cases(_type, "opset4")(partial(arithmetic, _type))
for _type in ("ReduceLogicalAnd", "ReduceLogicalOr"):
    cases(_type, "opset1")(partial(logical, _type))

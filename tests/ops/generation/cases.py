"""Random cases of the generation family."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.harness.case import Case, Input, Random, cases, const, param
from tests.harness.material import FLOATS, INDICES, INTEGERS, pick


@cases("Range", "opset1")
def range_1(rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, *INTEGERS))
    inputs = _progression(rng, [element] * 3, element.is_signed)
    if element.is_low_precision and (inputs[1].value < inputs[0].value) != (inputs[2].value < 0):
        inputs[:2] = inputs[1::-1]  # the reference ignores the direction of an empty range: see the deviations
    return Case("Range", version, inputs)


@cases("Range", "opset4")
def range_4(rng: Random, version: str) -> Case:
    target = pick(rng, (*FLOATS, *INTEGERS))
    elements = [pick(rng, (et.f32, et.f16, et.bf16, et.i8, et.i32, et.i64, et.u8, et.u32, et.u64)) for _ in range(3)]
    signed = target.is_signed and all(e.is_signed for e in elements)
    return Case("Range", version, _progression(rng, elements, signed), {"output_type": target})


def _progression(rng: Random, elements: list[et.ElementType], signed: bool) -> list[Input]:
    start, stop = rng.integers(-20 if signed else 0, 20, 2)
    if not signed:
        start, stop = min(start, stop), max(start, stop)  # unsigned subtraction would wrap
    numbers = np.array([start, stop, rng.integers(1, 6)], float) + (
        rng.integers(0, 8, 3) / 8 if rng.random() < 0.5 else 0
    )
    if rng.random() < 0.1:
        numbers[2] = 0.5  # no step in an integer type
        elements = [e if e.is_float else et.f32 for e in elements]
    if signed and rng.random() < 0.4:
        numbers[2] *= -1
    make = pick(rng, (const, const, param))
    return [make(np.asarray(n).astype(e.dtype), e) for n, e in zip(numbers, elements, strict=True)]


@cases("Eye", "opset9")
def eye(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f16, et.bf16, et.f64, et.i8, et.u8, et.i32, et.i64))
    make = pick(rng, (const, const, param))

    def scalar(low: int, high: int) -> Input:
        number = rng.integers(low, high)
        return make(number if rng.random() < 0.5 else [number], pick(rng, INDICES))

    inputs = [scalar(0, 6), scalar(0, 6), scalar(-7, 8)]
    if rng.random() < 0.5:
        batch = rng.integers(0, 4, int(rng.integers(0, 3)))
        inputs.append(pick(rng, (const, param))(batch, pick(rng, INDICES)))
    return Case("Eye", version, inputs, {"output_type": element})

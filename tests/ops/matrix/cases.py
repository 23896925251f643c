"""Random cases of the matrix products."""

from __future__ import annotations

from irload.core import element as et
from tests.harness.case import (
    Array,
    Case,
    Random,
    broadcastable,
    cases,
    const,
    param,
    pick,
    random_array,
)

FLOATS = (et.f32, et.f16, et.bf16, et.f64)
INTEGERS = (et.i32, et.i64, et.u32, et.u64)


def exact(rng: Random, shape: tuple[int, ...], element: et.ElementType) -> Array:
    """Values whose products no rounding changes in narrow types."""
    if element in (et.f32, et.f64):
        return random_array(rng, shape, element)
    return rng.integers(-3 if element.is_signed else 0, 4, shape).astype(element.dtype)


@cases("MatMul", "opset1")
def matmul(rng: Random, version: str) -> Case:
    element = pick(rng, (*FLOATS, *INTEGERS))
    rows, inner, columns = (int(n) for n in rng.integers(1, 6, 3))
    transpose_a, transpose_b = (bool(rng.integers(0, 2)) for _ in range(2))
    left, right = broadcastable(rng, (0, 3))
    a = (*left, inner, rows) if transpose_a else (*left, rows, inner)
    b = (*right, columns, inner) if transpose_b else (*right, inner, columns)
    if rng.random() < 0.15:
        a = (inner,)
    if rng.random() < 0.15:
        b = (inner,)
    attributes = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    kept = {k: v for k, v in attributes.items() if v or rng.random() < 0.5}
    # The CPU plugin computes integer products in f32, so only small ones agree on both sides.
    make = pick(rng, (param, const))
    inputs = [param(exact(rng, a, element), element), make(exact(rng, b, element), element)]
    return Case("MatMul", version, inputs, kept, rtol=1e-4, atol=1e-4)

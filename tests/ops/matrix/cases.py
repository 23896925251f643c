"""Random cases of the matrix products."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irload.core import element as et
from tests.harness.case import Array, Case, Input, Random, cases, const, param
from tests.harness.material import INDICES, broadcastable, pick, random_array, random_shape

FLOATS = (et.f32, et.f16, et.bf16, et.f64)
INTEGERS = (et.i32, et.i64, et.u32, et.u64)


def exact(rng: Random, shape: tuple[int, ...], element: et.ElementType) -> Array:
    """Values whose sums of products are exact in narrow types."""
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
    # The CPU plugin computes products of integers in f32, which are exact for small values.
    make = pick(rng, (param, const))
    inputs = [param(exact(rng, a, element), element), make(exact(rng, b, element), element)]
    return Case("MatMul", version, inputs, kept, rtol=1e-4, atol=1e-4)


EQUATIONS = (
    *("i,i->", "ij,j->i", "kii->k", "kii->ki", "ijk->kij", "ij,jk->ik", "ij,jk", "AbC", "ab,bcd,bc->ca"),
    *("a...->...", "a...,...->a...", "a...b,b...->a...", "...ij,...kj->...ik", "ij->", ",ij->j"),
    *("bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk", "...aa->...a", "ij,ij->i", "i,j->ij"),
)


@cases("Einsum", "opset7")
def einsum(rng: Random, version: str) -> Case:
    equation = pick(rng, EQUATIONS)
    sizes = {letter: int(rng.integers(1, 4)) for letter in equation if letter.isalpha()}
    covered = [int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3)))]
    element = pick(rng, (et.f32, et.f32, et.i32, et.f16))
    inputs: list[Input] = []
    for subscript in equation.partition("->")[0].split(","):
        before, dots, after = subscript.partition("...")
        middle = [1 if rng.random() < 0.3 else n for n in covered[int(rng.integers(0, len(covered) + 1)) :]]
        shape = [*(sizes[c] for c in before), *(middle if dots else ()), *(sizes[c] for c in after)]
        make = pick(rng, (param, param, const))
        operand = make(exact(rng, tuple(shape), element), element)
        # For an operand of unknown rank, OpenVINO's inference ignores that a letter of size 1 may broadcast.
        inputs.append(replace(operand, static_shape=any(sizes[c] == 1 for c in before + after)))
    return Case("Einsum", version, inputs, {"equation": equation}, rtol=1e-4, atol=1e-4)


@cases("Inverse", "opset14")
def inverse(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f32, et.f16, et.bf16))
    size = int(rng.integers(1, 5))
    shape = (*random_shape(rng, (0, 2), 1, 3), size, size)
    # Rows that dominate their diagonal keep the matrices far from singular.
    x = rng.uniform(-1, 1, shape) + np.eye(size) * rng.choice([-1, 1]) * (size + 1)
    operand = param(x.astype(element.dtype), element)
    adjoint = pick(rng, ({}, {"adjoint": False}, {"adjoint": True}))
    return Case("Inverse", version, [operand], adjoint, rtol=1e-3, atol=1e-3)


@cases("GroupedMatMul", "opset17")
def grouped_matmul(rng: Random, version: str) -> Case:
    groups, rows, inner, columns = (int(n) for n in rng.integers(1, 5, 4))
    element = pick(rng, (et.f32, et.f16, et.f64, et.i32))
    b = exact(rng, (groups, columns, inner), element)
    if rng.random() < 0.4:
        a = exact(rng, (groups, rows, inner), element)
        expected = np.stack([x.astype(np.float64) @ y.astype(np.float64).T for x, y in zip(a, b, strict=True)])
        inputs = [param(a, element), param(b, element)]
    else:
        sizes = rng.integers(0, 4, groups)
        spare = int(rng.integers(0, 2))
        a = exact(rng, (int(sizes.sum()) + spare, inner), element)
        owner = np.repeat(np.arange(groups), sizes)
        expected = np.zeros((len(a), columns))
        for k, group in enumerate(owner):
            expected[k] = b[group].astype(np.float64) @ a[k].astype(np.float64)
        index = pick(rng, INDICES)
        make = pick(rng, (const, param))
        inputs = [param(a, element), param(b, element), make(np.cumsum(sizes), index)]
    return Case("GroupedMatMul", version, inputs, expected=[expected], rtol=1e-5)

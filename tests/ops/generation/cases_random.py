"""Random cases of RandomUniform and Multinomial, always with a seed."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.harness import runtime
from tests.harness.case import Array, Case, Random, cases, const, param
from tests.harness.material import INDICES, pick, random_shape

SEEDS = (1, 10, 150, 2**31 + 5, 2**40 + 3, 2**62 + 11)


@cases("RandomUniform", "opset8")
def random_uniform(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f16, et.bf16, et.f64, et.i32, et.i64))
    low, high = np.sort(rng.choice(200, 2, replace=False)) - 100
    if element is et.i64 and rng.random() < 0.4:
        low, high = low * 2**33, high * 2**33
    attributes = {"output_type": element, "global_seed": pick(rng, SEEDS), "op_seed": pick(rng, (0, *SEEDS))}
    if rng.random() < 0.7:
        attributes["alignment"] = pick(rng, ["tensorflow", "pytorch"])
    if element is et.f64 and high <= 0:
        low, high = -high, -low + 1  # the reference crashes on f64 bounds below zero with alignment pytorch
    make = pick(rng, (const, param))
    bounds = [make(np.array(n if rng.random() < 0.5 else [n]).astype(element.dtype), element) for n in (low, high)]
    # For a shape of unknown length OpenVINO infers a wrong rank: see the deviations.
    shape = const(np.array(random_shape(rng, (0, 4)), int), pick(rng, INDICES))
    # The reference's bf16 results differ by one unit if they must be rounded; all other results are bit-identical.
    atol = 2.0**-7 * (high - low + max(-low, high)) if element is et.bf16 else 0
    return Case("RandomUniform", version, [shape, *bounds], attributes, oracle="reference", rtol=0, atol=atol)


@cases("Multinomial", "opset13")
def multinomial(rng: Random, version: str) -> Case:
    """Expected results are computed here, with the random numbers of the reference's RandomUniform.

    The CPU plugin draws other numbers, and the reference has no kernel for Multinomial.
    """
    replaced, logarithms = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    batch, classes = int(rng.integers(1, 4)), int(rng.integers(1, 8))
    count = int(rng.integers(1, 10 if replaced else classes + 1))
    probs = rng.uniform(-3, 3, (batch, classes)) if logarithms else rng.uniform(0.1, 5, (batch, classes))
    seeds = {"global_seed": pick(rng, SEEDS), "op_seed": pick(rng, (0, *SEEDS))}
    attributes = {"convert_type": pick(rng, INDICES), "with_replacement": replaced, "log_probs": logarithms, **seeds}
    make = pick(rng, (const, param))
    samples = make(count if rng.random() < 0.5 else [count], pick(rng, INDICES))
    element = pick(rng, (et.f32, et.f32, et.f64))
    bounds = [const(n, element) for n in (0, 1)]
    draws = Case("RandomUniform", "opset8", [const([batch, count]), *bounds], {"output_type": element, **seeds})
    chances = np.exp(probs) if logarithms else probs
    rows = [_drawn(*row, replaced) for row in zip(chances, runtime.outputs(draws)[0], strict=True)]
    expected = [np.array(rows, attributes["convert_type"].dtype)]
    return Case("Multinomial", version, [param(probs, element), samples], attributes, expected=expected)


def _drawn(chances: Array, draws: Array, replaced: bool) -> list[int]:
    """The classes drawn from one row, by scaling each draw to the remaining probability."""
    left, array = chances.astype(float).copy(), []
    for draw in draws:
        reached, k = left[0], 0
        while draw * left.sum() > reached:
            k += 1
            reached += left[k]
        array.append(k)
        if not replaced:
            left[k] = 0
    return array

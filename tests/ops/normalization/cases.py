"""Random cases of the normalization family."""

from __future__ import annotations

from dataclasses import replace

from irload.core import element as et
from irload.core.element import ElementType
from tests.harness.case import Case, Input, Random, cases, const, param
from tests.harness.material import INDICES, pick, random_array, random_shape

ELEMENTS = (et.f32, et.f32, et.f16)


def random_axes(rng: Random, rank: int, *, signed: bool = True) -> Input:
    """A constant with some of the axes, in any order."""
    axes = rng.permutation(rank)[: int(rng.integers(1, rank + 1))]
    if signed:
        axes = [int(a) - rank if rng.random() < 0.3 else int(a) for a in axes]
    return const(axes, pick(rng, INDICES))


@cases("MVN", "opset1", "opset2")
def mvn(rng: Random, version: str) -> Case:
    element: ElementType = pick(rng, ELEMENTS)
    shape = random_shape(rng, (3, 5), 1, 5)
    attributes = {
        "eps": float(pick(rng, (1e-3, 0.5))),
        "across_channels": bool(rng.random() < 0.5),
        "normalize_variance": bool(rng.random() < 0.7),
    }
    return Case("MVN", version, [param(random_array(rng, shape, element), element)], attributes, rtol=1e-4, atol=1e-4)


@cases("MVN", "opset6")
def mvn_over_axes(rng: Random, version: str) -> Case:
    element: ElementType = pick(rng, ELEMENTS)
    shape = random_shape(rng, (1, 5), 1, 5)
    attributes = {
        "eps": float(pick(rng, (1e-3, 0.5))),
        "normalize_variance": bool(rng.random() < 0.7),
        "eps_mode": pick(rng, ("INSIDE_SQRT", "OUTSIDE_SQRT", "inside_sqrt", "outside_sqrt")),
    }
    data, axes = param(random_array(rng, shape, element), element), random_axes(rng, len(shape))
    # Only the reference, which supports only f32, accepts axes that are not constant.
    axes = replace(axes, constant=element is not et.f32 or rng.random() < 0.7)
    return Case("MVN", version, [data, axes], attributes, rtol=1e-4, atol=1e-4)


@cases("BatchNormInference", "opset1", "opset5")
def batch_norm(rng: Random, version: str) -> Case:
    element: ElementType = pick(rng, (*ELEMENTS, et.f64, et.bf16))
    shape = random_shape(rng, (2, 5), 1, 4)
    make = pick(rng, (const, param))
    gamma, beta, mean = (make(random_array(rng, shape[1:2], element), element) for _ in range(3))
    variance = make(random_array(rng, shape[1:2], element, 0.5, 4), element)
    data = param(random_array(rng, shape, element), element)
    inputs = [gamma, beta, data, mean, variance] if version == "opset1" else [data, gamma, beta, mean, variance]
    # The reference rounds every operation of a bf16 graph, irload only the result.
    tolerance = 5e-2 if element in (et.bf16, et.f16) else 1e-4
    attributes = {"epsilon": float(pick(rng, (0.0, 1e-3, 0.5)))}
    return Case("BatchNormInference", version, inputs, attributes, rtol=tolerance, atol=tolerance)


@cases("GroupNormalization", "opset12")
def group_norm(rng: Random, version: str) -> Case:
    element: ElementType = pick(rng, ELEMENTS)
    groups, each = (int(v) for v in rng.integers(1, 4, 2))
    shape = (int(rng.integers(1, 4)), groups * each, *random_shape(rng, (1, 3), 1, 4))
    make = pick(rng, (const, param))
    scale, bias = (make(random_array(rng, shape[1:2], element), element) for _ in range(2))
    data = param(random_array(rng, shape, element), element)
    attributes = {"num_groups": groups, "epsilon": float(pick(rng, (1e-3, 0.5)))}
    return Case("GroupNormalization", version, [data, scale, bias], attributes, rtol=1e-4, atol=1e-4)


@cases("LRN", "opset1")
def lrn(rng: Random, version: str) -> Case:
    element: ElementType = pick(rng, ELEMENTS)
    shape = random_shape(rng, (3, 5), 1, 6)
    attributes = {
        "alpha": float(rng.uniform(0.1, 2)),
        "beta": float(rng.uniform(0.3, 2)),
        "bias": float(rng.integers(1, 4)),  # the CPU plugin truncates it to an integer
        "size": int(rng.integers(1, 6)),
    }
    data = param(random_array(rng, shape, element), element)
    # The CPU plugin supports either the channel axis or all spatial axes.
    axes = pick(rng, ([1], list(range(2, len(shape)))))
    return Case("LRN", version, [data, const(axes, pick(rng, INDICES))], attributes, rtol=1e-4)


@cases("NormalizeL2", "opset1")
def normalize_l2(rng: Random, version: str) -> Case:
    element: ElementType = pick(rng, ELEMENTS)
    shape = random_shape(rng, (2, 4), 1, 5)
    attributes = {"eps": float(pick(rng, (1e-6, 0.5))), "eps_mode": pick(rng, ("add", "max"))}
    data = param(random_array(rng, shape, element), element)
    axes = random_axes(rng, len(shape))
    return Case("NormalizeL2", version, [data, axes], attributes, rtol=1e-4)


@cases("GRN", "opset1")
def grn(rng: Random, version: str) -> Case:
    element: ElementType = pick(rng, ELEMENTS)
    data = param(random_array(rng, random_shape(rng, (2, 4), 1, 5), element), element)
    return Case("GRN", version, [data], {"bias": float(rng.uniform(0.1, 2))}, rtol=1e-4)

"""Random cases of the pooling family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from tests.harness.case import Array, Case, Input, Random, cases, const, param
from tests.harness.material import INDICES, pick, random_array

ELEMENTS = (et.f32, et.f32, et.f16, et.i32, et.i64, et.u8, et.i8, et.f64)


def geometry(rng: Random, version: str, dilated: bool) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Attributes of a pooling, and a shape that its windows fit into."""
    spatial = int(rng.integers(1, 4))
    kernel, strides = rng.integers(1, 4, (2, spatial)).tolist()
    dilations = rng.integers(1, 3, spatial).tolist() if dilated else [1] * spatial
    auto_pad = pick(rng, ["explicit", "explicit", "explicit", "same_upper", "same_lower", "valid"])
    # Pads are smaller than a window, so that only windows added by rounding up may contain only padding.
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    begin, end = ([int(rng.integers(0, min(k, 3))) for k in spans] for _ in range(2))
    sizes = [s + int(rng.integers(0, 5)) for s in spans]
    attributes: dict[str, Any] = {"kernel": kernel, "strides": strides, "pads_begin": begin, "pads_end": end}
    if dilated:  # always given: with the default, OpenVINO crashes or returns wrong values
        attributes["dilations"] = dilations
    if auto_pad != "explicit" or rng.random() < 0.5:
        attributes["auto_pad"] = auto_pad
    if rng.random() < 0.8:
        torch = ["ceil_torch"] if version in ("opset14", "opset16") else []
        attributes["rounding_type"] = pick(rng, ["floor", "ceil", *torch])
    return attributes, (*rng.integers(1, 4, 2).tolist(), *sizes)


def torch_from_zero(attributes: dict[str, Any]) -> bool:
    """Whether OpenVINO's lower bound may be wrong: for size 0 it does not omit the window that ceil_torch omits."""
    return attributes.get("rounding_type") == "ceil_torch" and any(attributes["pads_end"])


@cases("AvgPool", "opset1", "opset14", "opset16")
def average(rng: Random, version: str) -> Case:
    attributes, shape = geometry(rng, version, version == "opset16")
    attributes["exclude-pad"] = bool(rng.random() < 0.5)
    if attributes.get("rounding_type") == "ceil":
        # The CPU plugin divides by zero if rounding up adds a window without elements of the input.
        kernel = attributes["kernel"]
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, attributes.get("dilations", [1] * 3), strict=False)]
        attributes["strides"] = [min(s, n) for s, n in zip(attributes["strides"], spans, strict=True)]
        attributes["pads_end"] = [0] * len(kernel)
    # The CPU plugin has no kernel for dilated windows of wide integers, and without AVX-512 none for wide integers.
    element: ElementType = pick(rng, [e for e in ELEMENTS if e not in (et.i32, et.i64)])
    data = param(random_array(rng, shape, element, -9, 9), element)
    return Case("AvgPool", version, [data], attributes, inconsistent_shapes=torch_from_zero(attributes))


@cases("MaxPool", "opset1")
def maximum(rng: Random, version: str) -> Case:
    attributes, shape = geometry(rng, version, dilated=False)
    # The CPU plugin computes f64 as f32, so a window that contains only padding gives the lowest f32 number.
    element: ElementType = pick(rng, [e for e in ELEMENTS if e is not et.f64])
    return Case("MaxPool", version, [param(some_infinite(rng, shape, element), element)], attributes)


def some_infinite(rng: Random, shape: Sequence[int], element: ElementType) -> Array:
    """Inputs of a maximum. Some f32 inputs consist mostly of infinities, so that whole windows are infinite."""
    data = random_array(rng, shape, element, -9, 9)
    if element is et.f32 and rng.random() < 0.2:
        data[rng.random(data.shape) < 0.8] = pick(rng, (np.inf, -np.inf, -np.inf))
    return data


@cases("MaxPool", "opset8", "opset14")
def maximum_with_indices(rng: Random, version: str) -> Case:
    attributes, shape = geometry(rng, version, dilated=True)
    element: ElementType = pick(rng, [e for e in ELEMENTS if e is not et.f64])
    if rng.random() < 0.6:
        attributes["axis"] = int(rng.integers(-len(shape), len(shape)))
    if rng.random() < 0.6:
        attributes["index_element_type"] = pick(rng, (et.i32, et.i64))
    data = some_infinite(rng, shape, element)
    return Case(
        "MaxPool",
        version,
        [param(data, element)],
        attributes,
        outputs=2,
        inconsistent_shapes=torch_from_zero(attributes),
    )


@cases("AdaptiveAvgPool", "opset8")
def adaptive_average(rng: Random, version: str) -> Case:
    return Case("AdaptiveAvgPool", version, adaptive_inputs(rng, (et.f32, et.f16)))


@cases("AdaptiveMaxPool", "opset8")
def adaptive_maximum(rng: Random, version: str) -> Case:
    attributes = {"index_element_type": pick(rng, (et.i32, et.i64))} if rng.random() < 0.7 else {}
    inputs = adaptive_inputs(rng, (et.f32, et.f16, et.i32, et.i64, et.u8))
    # The CPU plugin writes indices of i32 only.
    index = attributes.get("index_element_type", et.i64)
    expected = None if index is et.i32 else adaptive_maximum_of(inputs[0].value, inputs[1].value.tolist())
    return Case("AdaptiveMaxPool", version, inputs, attributes, outputs=2, expected=expected)


def adaptive_maximum_of(data: Array, asked: list[int]) -> list[Array]:
    """AdaptiveMaxPool by its definition, one output element at a time."""
    values = np.zeros((*data.shape[:2], *asked), data.dtype)
    places = np.zeros(values.shape, np.int64)
    numbers = np.arange(int(np.prod(data.shape[2:]))).reshape(data.shape[2:])
    for at in np.ndindex(values.shape):
        window = tuple(
            slice(math.floor(i * n / m), math.ceil((i + 1) * n / m))
            for i, n, m in zip(at[2:], data.shape[2:], asked, strict=True)
        )
        some = data[(*at[:2], *window)]
        values[at], places[at] = some.max(), numbers[window].flat[int(some.argmax())]
    return [values, places]


def adaptive_inputs(rng: Random, elements: Sequence[ElementType]) -> list[Input]:
    spatial = int(rng.integers(1, 4))
    element: ElementType = pick(rng, elements)
    shape = (*rng.integers(1, 4, 2).tolist(), *rng.integers(1, 8, spatial).tolist())
    asked = rng.integers(1, 6, spatial)
    make = pick(rng, (const, const, param))
    return [param(random_array(rng, shape, element, -9, 9), element), make(asked, pick(rng, INDICES))]

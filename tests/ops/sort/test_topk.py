"""TopK: ties, orders, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, TypeMismatch
from irload.ops.registry import resolve
from irload.ops.sort.topk import ranking

X = np.array([[3.0, 1.0, 3.0, 5.0, 1.0]], np.float32)


def topk(version: str = "opset11", **attributes: Any) -> Any:
    return resolve("TopK", version)[0](**{"axis": -1, "mode": "max", "sort": "value", **attributes})


@pytest.mark.parametrize(
    ("attributes", "k", "values", "indices"),
    [
        ({}, 3, [5, 3, 3], [3, 0, 2]),
        ({"mode": "min"}, 3, [1, 1, 3], [1, 4, 0]),
        ({"sort": "index"}, 2, [3, 5], [0, 3]),
        ({"mode": "min", "sort": "index"}, 3, [3, 1, 1], [0, 1, 4]),
        ({"sort": "none"}, 0, [], []),
    ],
)
def test_equal_elements_keep_their_order(attributes: dict[str, Any], k: int, values: Any, indices: Any) -> None:
    output = topk(**attributes).compute(X, np.array(k))
    assert output[0].tolist() == [values]
    assert output[1].tolist() == [indices]
    assert output[1].dtype == np.int32


@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize("kind", ["equal", "special", "normal", "integers"])
def test_few_of_many(mode: str, kind: str) -> None:
    """The result equals the first k of all elements sorted, also with equal elements and NaN."""
    rng = np.random.default_rng(0)
    choices = {"equal": [1.0], "special": [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], "integers": range(-5, 6)}
    data = rng.choice(choices[kind], (2, 900, 3)) if kind in choices else rng.standard_normal((2, 900, 3))
    data = data.astype(np.int32 if kind == "integers" else np.float32)
    for k in (1, 2, 9, 14):
        values, indices = topk(axis=1, mode=mode).compute(data, np.array(k))
        expected = ranking(data, 1, mode == "max")[:, :k]
        np.testing.assert_array_equal(indices, expected)
        np.testing.assert_array_equal(values, np.take_along_axis(data, expected, 1))


@pytest.mark.parametrize("extreme", [np.iinfo(np.int64).min, np.iinfo(np.int64).max])
def test_integers_are_not_negated(extreme: int) -> None:
    data = np.array([0, extreme, 1], np.int64)
    assert topk(axis=0).compute(data, np.array(3))[0].tolist() == sorted([0, extreme, 1], reverse=True)


@pytest.mark.parametrize(
    ("x", "k", "expected"),
    [
        (Shape(2, 5), 3, Shape(2, 3)),
        (Shape(2, (4, 8)), 3, Shape(2, 3)),
        (Shape(2, (4, 8)), None, Shape(2, (0, 8))),
        (Shape.unranked(), 3, Shape.unranked()),
    ],
)
def test_inferred_length(x: Shape, k: int | None, expected: Shape) -> None:
    count = TensorType(et.i64, Shape()) if k is None else TensorType.of(np.array(k))
    values, indices = topk().infer(TensorType(et.f32, x), count)
    assert (values.shape, indices.shape) == (expected, expected)
    assert (values.element, indices.element) == (et.f32, et.i32)


@pytest.mark.parametrize(
    ("version", "axis", "x", "k", "error"),
    [
        ("opset11", 2, Shape(2, 5), np.array(1), ShapeMismatch),
        ("opset11", 0, Shape(), np.array(1), ShapeMismatch),
        ("opset11", 1, Shape(2, 5), np.array([1]), ShapeMismatch),
        ("opset11", 1, Shape(2, 5), np.array(6), ShapeMismatch),
        ("opset11", 1, Shape(2, 5), np.array(-1), ShapeMismatch),
        ("opset11", 1, Shape(2, 5), np.array(1.0), TypeMismatch),
        ("opset1", 1, Shape(2, 5), np.array(1, np.uint8), TypeMismatch),
    ],
)
def test_faults(version: str, axis: int, x: Shape, k: Any, error: type[IRError]) -> None:
    with pytest.raises(error):
        topk(version, axis=axis).infer(TensorType(et.f32, x), TensorType.of(k))


@pytest.mark.parametrize("wrong", [{"index_element_type": et.i8}, {"stable": True, "sort": "none"}, {"mode": "mean"}])
def test_invalid_attributes(wrong: dict[str, Any]) -> None:
    with pytest.raises(AttributeInvalid):
        topk(**wrong)

"""ScaledDotProductAttention: hand-worked rows of weights, the effect of each optional input, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import ShapeMismatch, TypeMismatch
from irload.ops.sequence.attention import ScaledDotProductAttention
from tests.plan.graphs import Net

# The values are an identity matrix, so the output is the attention weights. Scores are 0, ln 2 and ln 4.
QUERY = np.ones((1, 3, 1), np.float32)
KEY = np.log(np.array([1, 2, 4], np.float32)).reshape(1, 3, 1)
VALUE = np.eye(3, dtype=np.float32)[None]
WHOLE = [1 / 7, 2 / 7, 4 / 7]


def weights(*rest: Any, causal: bool = False) -> Any:
    return ScaledDotProductAttention(causal=causal).compute(QUERY, KEY, VALUE, *rest)[0]


def test_weights_are_the_softmax_of_the_scores() -> None:
    np.testing.assert_allclose(weights(), [WHOLE] * 3, rtol=1e-6)


def test_causal_sees_only_the_past_and_ignores_the_mask() -> None:
    expected = [[1, 0, 0], [1 / 3, 2 / 3, 0], WHOLE]
    np.testing.assert_allclose(weights(np.full((3, 3), np.nan, np.float32), causal=True), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "mask", [np.array([[True, False, True]]), np.array([[0, -np.inf, 0]], np.float32)], ids=["boolean", "float"]
)
def test_mask_drops_a_key_in_every_row(mask: Any) -> None:
    np.testing.assert_allclose(weights(mask), [[1 / 5, 0, 4 / 5]] * 3, rtol=1e-6)


@pytest.mark.parametrize("averages", [False, True])
@pytest.mark.parametrize("element", [et.f32, et.f16, et.bf16], ids=str)
def test_a_row_without_keys(element: et.ElementType, averages: bool) -> None:
    query, key, value = (x.astype(element.dtype) for x in (QUERY, KEY, VALUE))
    kept = np.array([[False, False, False], [True, False, False], [True, True, True]])
    op = ScaledDotProductAttention()
    op.averages = averages
    with np.errstate(invalid="ignore"):
        output = op.compute(query, key, value, kept)[0].astype(np.float32)
    np.testing.assert_allclose(output, [[1 / 3 if averages else np.nan] * 3, [1, 0, 0], WHOLE], rtol=1e-2)


@pytest.mark.parametrize("options", [{"optimize": False}, {"jit": False}, {}], ids=str)
def test_rows_without_keys_are_averages_only_if_keys_are_cached(options: dict[str, Any]) -> None:
    """The ONNX front end replaces NaN after attention; a decoder with left padding must not compute NaN."""
    net = Net()
    q, k, v = (net.input(1, 2, 3, 4) for _ in range(3))
    kept = net.constant(np.array([[True, True, False], [False, False, False], [True, True, True]]))
    start = net.constant(np.zeros((1, 2, 0, 4), np.float32))
    variable = {"variable_id": "k", "variable_type": "f32", "variable_shape": "1,2,?,4"}
    past = net.op("ReadValue", start, version="opset6", **variable)
    attention = "ScaledDotProductAttention"
    separate = net.op(attention, q, k, v, kept, version="opset13", causal=False)
    zeroed = net.op("Select", net.op("IsNaN", separate, version="opset10"), net.constant(np.float32(0)), separate)
    cached = net.op(attention, q, net.op("Concat", past, k, axis=2), v, kept, version="opset13", causal=False)
    feed = [np.random.default_rng(k).standard_normal((1, 2, 3, 4)).astype(np.float32) for k in range(3)]
    zeroed_, cached_ = irload.compile_model(net.model(zeroed, cached), 1, **options)(feed).values()
    assert (zeroed_[:, :, 1] == 0).all()
    np.testing.assert_allclose(cached_[:, :, 1], feed[2].mean(2), rtol=1e-5)
    np.testing.assert_allclose(cached_[:, :, [0, 2]], zeroed_[:, :, [0, 2]], rtol=1e-5)


@pytest.mark.parametrize("mask", [np.zeros((), np.float32), np.False_])
def test_scalar_mask_is_no_mask(mask: Any) -> None:
    np.testing.assert_allclose(weights(np.asarray(mask)), [WHOLE] * 3, rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_scale_replaces_the_root_of_the_embedding(shape: tuple[int, ...]) -> None:
    doubled = weights(np.zeros((), np.float32), np.full(shape, 2, np.float32))
    np.testing.assert_allclose(doubled, [[1 / 21, 4 / 21, 16 / 21]] * 3, rtol=1e-6)


def test_sink_takes_its_share_of_each_row() -> None:
    sink = np.zeros((1, 1, 1), np.float32)
    shares = weights(np.zeros((), np.float32), np.ones((), np.float32), sink)
    np.testing.assert_allclose(shares, [[1 / 8, 2 / 8, 4 / 8]] * 3, rtol=1e-6)


def test_no_keys_give_zeros() -> None:
    output = ScaledDotProductAttention().compute(QUERY, KEY[:, :0], VALUE[:, :0])
    np.testing.assert_array_equal(output, np.zeros((1, 3, 3)))


def typed(*shapes: Shape, element: et.ElementType = et.f32) -> list[TensorType]:
    return [TensorType(element, s) for s in shapes]


Q, K, V = Shape(2, 3, 4), Shape(2, 5, 4), Shape(2, 5, 6)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ((Q, K, V), Shape(2, 3, 6)),
        ((Shape(None, (3, 4), 4), K, V), Shape(2, (3, 4), 6)),
        ((Shape(None, 3, 4), Shape(None, 5, 4), V), Shape(2, 3, 6)),
        ((Q, Shape.unranked(), Shape.unranked()), Shape(2, 3, None)),
        ((Shape.unranked(), K, V), Shape.unranked()),
        ((Shape(4, 1, 3, 4), Shape(2, 5, 4), V), Shape(4, 2, 3, 6)),
        ((Shape(2, 1, 4), K, V, Shape(3, 5)), Shape(2, 3, 6)),
        ((Q, K, V, Shape()), Shape(2, 3, 6)),
    ],
)
def test_shape(shapes: tuple[Shape, ...], expected: Shape) -> None:
    inferred: TensorType = ScaledDotProductAttention().infer(*typed(*shapes))
    assert inferred.shape == expected


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ((Shape(3, 4), K, V), "query must have at least 3 axes"),
        ((Q, Shape(2, 5, 1), V), "embedding dimension of query is 4, of key 1"),
        ((Q, K, Shape(2, 1, 6)), "source dimension of key is 5, of value 1"),
        ((Q, Shape(3, 5, 4), V), "cannot broadcast"),
        ((Q, K, V, Shape(5)), "attention_mask must be a scalar or have at least 2 axes"),
        ((Q, K, V, Shape(2, 5)), "does not broadcast to target 3 by source 5"),
        ((Q, K, V, Shape(3, 5), Shape(2)), "scale must be a scalar or have one element"),
        ((Q, K, V, Shape(3, 5), Shape(), Shape(3)), "sink must broadcast"),
        ((Q, K, V, Shape(3, 5), Shape(), Shape(2, 3, 5)), "sink must broadcast"),
    ],
)
def test_shapes_that_disagree(shapes: tuple[Shape, ...], message: str) -> None:
    with pytest.raises(ShapeMismatch, match=message):
        ScaledDotProductAttention().infer(*typed(*shapes))


@pytest.mark.parametrize("element", [et.i32, et.boolean])
def test_integers_are_refused(element: et.ElementType) -> None:
    with pytest.raises(TypeMismatch, match="floating-point"):
        ScaledDotProductAttention().infer(*typed(Q, K, V, element=element))


def test_mask_is_boolean_or_of_the_type_of_the_query() -> None:
    with pytest.raises(TypeMismatch, match="must agree"):
        ScaledDotProductAttention().infer(*[*typed(Q, K, V), TensorType(et.i32, Shape(3, 5))])

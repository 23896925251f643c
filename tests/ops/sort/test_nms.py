"""NonMaxSuppression: hand-worked cases of the specification's algorithm, its defaults, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, TypeMismatch
from irload.ops.registry import resolve

# Three boxes overlap, with IoU 0.8182 (0, 1), 0.25 (0, 2) and 0.4286 (1, 2); box 3 overlaps no other.
BOXES = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 0.6, 1, 1.6], [0, 10, 1, 11]]], np.float32)
SCORES = np.array([[[0.9, 0.8, 0.7, 0.6]]], np.float32)


def nms(version: str = "opset9", **attributes: Any) -> Any:
    return resolve("NonMaxSuppression", version)[0](**attributes)


def run(*options: float, boxes: Any = BOXES, scores: Any = SCORES, version: str = "opset9", **attributes: Any) -> Any:
    return nms(version, **attributes).compute(boxes, scores, *map(np.float32, options))


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ((), []),
        ((0,), []),
        ((4, 0.5), [0, 2, 3]),
        ((4, 0.2), [0, 3]),
        ((4, 0.9), [0, 1, 2, 3]),
        ((2, 0.5), [0, 2]),
        ((4, 0.5, 0.65), [0, 2]),
        ((4, 0.5, 0.7), [0]),  # the score must exceed the threshold
        ((4, 0.0), [0, 3]),  # a box whose overlap equals the threshold is kept
    ],
)
def test_selection(options: tuple[float, ...], kept: list[int]) -> None:
    indices, scores, count = run(*options)
    assert indices[:, 2].tolist() == kept
    assert np.array_equal(scores[:, 2], SCORES[0, 0, kept])
    assert count.tolist() == [len(kept)]


def test_soft_suppression_lowers_scores_and_reorders() -> None:
    indices, scores, _ = run(4, 0.5, 0.2, 0.5)
    decay = np.exp(-(np.array([0.9 / 1.1, 0.4 / 1.6, 0.5 / 1.5]) ** 2))
    assert indices[:, 2].tolist() == [0, 2, 3, 1]
    assert np.allclose(scores[:, 2], [0.9, 0.7 * decay[1], 0.6, 0.8 * decay[0] * decay[2]], atol=1e-5)


def test_order_within_and_across_classes() -> None:
    boxes, scores = np.concatenate([BOXES, BOXES]), np.array([[[0.3, 0, 0, 0.5]], [[0.4, 0, 0, 0.5]]], np.float32)
    by_class = run(4, 0.5, 0.1, boxes=boxes, scores=scores, sort_result_descending=False)[0]
    across = run(4, 0.5, 0.1, boxes=boxes, scores=scores)[0]
    assert by_class.tolist() == [[0, 0, 3], [0, 0, 0], [1, 0, 3], [1, 0, 0]]
    assert across.tolist() == [[0, 0, 3], [1, 0, 3], [1, 0, 0], [0, 0, 0]]


def test_swapped_corners_and_center_encoding_mean_the_same_boxes() -> None:
    swapped = BOXES[..., [2, 3, 0, 1]]
    center = np.concatenate([(BOXES[..., :2] + BOXES[..., 2:]) / 2, BOXES[..., 2:] - BOXES[..., :2]], -1)
    expected = run(4, 0.5)[0].tolist()
    assert run(4, 0.5, boxes=swapped)[0].tolist() == expected
    assert run(4, 0.5, boxes=center, box_encoding="center")[0].tolist() == expected


def test_early_versions_return_only_the_selected_rows() -> None:
    assert run(4, 0.5, version="opset1").tolist() == [[0, 0, 0], [0, 0, 2], [0, 0, 3]]
    assert run(4, 0.5, version="opset4", output_type=et.i32).dtype == np.int32


@pytest.mark.parametrize("version", ["opset1", "opset3", "opset4", "opset5", "opset9"])
@pytest.mark.parametrize(
    ("boxes", "scores", "limit", "rows"),
    [
        (Shape(2, 6, 4), Shape(2, 3, 6), 3, (0, 18)),
        (Shape(2, 6, 4), Shape(2, 3, 6), 9, (0, 36)),
        (Shape(2, 6, 4), Shape(2, 3, 6), None, None),
        (Shape(2, 6, 4), Shape(2, None, 6), 3, None),
        (Shape.unranked(), Shape(2, 3, 6), 3, None),
    ],
)
def test_bound_on_the_rows(version: str, boxes: Shape, scores: Shape, limit: int | None, rows: Any) -> None:
    limit_type = TensorType(et.i64, Shape()) if limit is None else TensorType.of(np.array(limit))
    inferred = nms(version).infer(TensorType(et.f32, boxes), TensorType(et.f32, scores), limit_type)
    inferred = inferred if isinstance(inferred, TensorType) else inferred[0]
    assert inferred.shape == Shape(rows, 3)


@pytest.mark.parametrize(
    ("version", "boxes", "scores", "limit", "error"),
    [
        ("opset9", Shape(2, 6, 5), Shape(2, 3, 6), Shape(), ShapeMismatch),
        ("opset9", Shape(6, 4), Shape(2, 3, 6), Shape(), ShapeMismatch),
        ("opset9", Shape(2, 6, 4), Shape(2, 6), Shape(), ShapeMismatch),
        ("opset9", Shape(2, 6, 4), Shape(1, 3, 6), Shape(), ShapeMismatch),
        ("opset9", Shape(2, 6, 4), Shape(2, 3, 7), Shape(), ShapeMismatch),
        ("opset9", Shape(2, 6, 4), Shape(2, 3, 6), Shape(2), ShapeMismatch),
        ("opset4", Shape(2, 6, 4), Shape(2, 3, 6), Shape(1), ShapeMismatch),
    ],
)
def test_faults(version: str, boxes: Shape, scores: Shape, limit: Shape, error: type[IRError]) -> None:
    with pytest.raises(error):
        nms(version).infer(TensorType(et.f32, boxes), TensorType(et.f32, scores), TensorType(et.i64, limit))


def test_element_types() -> None:
    boxes, scores = TensorType(et.f32, Shape(1, 2, 4)), TensorType(et.f32, Shape(1, 1, 2))
    with pytest.raises(TypeMismatch):
        nms().infer(TensorType(et.i32, Shape(1, 2, 4)), scores)
    with pytest.raises(TypeMismatch):
        nms().infer(boxes, scores, TensorType(et.f32, Shape()))
    with pytest.raises(AttributeInvalid):
        nms(output_type=et.f32)

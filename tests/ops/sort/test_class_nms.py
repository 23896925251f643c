"""MulticlassNms, MatrixNms, NMSRotated, SearchSorted, TopKROIs: hand-worked cases and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, ExecutionError, ShapeMismatch
from irload.ops.registry import resolve
from irload.ops.sort import class_nms, nms_rotated
from irload.ops.sort.nms_rotated import rotated_iou

# Overlaps 0.8182 (0, 1), 0.25 (0, 2), 0.3333 (1, 2); box 3 overlaps no other.
BOXES = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 0.6, 1, 1.6], [0, 10, 1, 11]]], np.float32)
SCORES = np.array([[[0.9, 0.8, 0.7, 0.6], [0.1, 0.2, 0.3, 0.95]]], np.float32)


def make(type: str, version: str = "opset15", **attributes: Any) -> Any:
    return resolve(type, version)[0](**attributes)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"iou_threshold": 0.5}, [(1, 3), (0, 0), (0, 2), (0, 3), (1, 2), (1, 1)]),
        ({"iou_threshold": 0.5, "sort_result_type": "classid"}, [(0, 0), (0, 2), (0, 3), (1, 3), (1, 2), (1, 1)]),
        ({"iou_threshold": 0.5, "keep_top_k": 2}, [(1, 3), (0, 0)]),
        ({"iou_threshold": 0.5, "nms_top_k": 2}, [(1, 3), (0, 0), (1, 2)]),
        ({"iou_threshold": 0.5, "background_class": 0}, [(1, 3), (1, 2), (1, 1)]),
        ({"iou_threshold": 0.5, "score_threshold": 0.7}, [(1, 3), (0, 0), (0, 2)]),  # a score at the threshold is kept
        ({"iou_threshold": 0.9, "nms_eta": 0.5, "background_class": 1}, [(0, 0), (0, 2), (0, 3)]),
        ({"background_class": 0, "keep_top_k": 0}, []),
    ],
)
def test_multiclass(attributes: dict[str, Any], expected: list[tuple[int, int]]) -> None:
    rows, index, count = make("MulticlassNms", **attributes).compute(BOXES, SCORES)
    assert list(zip(rows[:, 0].tolist(), index[:, 0].tolist(), strict=True)) == expected
    assert count.tolist() == [len(expected)]
    assert np.array_equal(rows[:, 2:], BOXES[0, index[:, 0]])


def test_multiclass_with_boxes_a_class_flattens_box_then_class() -> None:
    boxes, scores = np.concatenate([BOXES, BOXES + 20]), SCORES[0]
    _, index, count = make("MulticlassNms", iou_threshold=0.5).compute(boxes, scores, np.array([3, 0, 1]))
    assert index[:, 0].tolist() == [0, 4, 5, 3, 7, 6]
    assert count.tolist() == [4, 0, 2]


def test_multiclass_rejects_more_regions_than_boxes() -> None:
    with pytest.raises(ExecutionError):
        make("MulticlassNms").compute(BOXES, SCORES[0, :1], np.array([5]))


@pytest.mark.parametrize(
    ("attributes", "scores"),
    [
        ({}, [0.9, 0.7 * 0.75, 0.6, 0.8 * (1 - 9 / 11)]),
        ({"decay_function": "gaussian"}, [0.9, 0.7 * np.exp(-2 / 16), 0.6, 0.8 * np.exp(-2 * (9 / 11) ** 2)]),
        ({"post_threshold": 0.55}, [0.9, 0.6]),
    ],
)
def test_matrix_decay(attributes: dict[str, Any], scores: list[float]) -> None:
    rows = make("MatrixNms", background_class=1, **attributes).compute(BOXES, SCORES)[0]
    # The overlap of box 2 with box 1 has less weight, because box 1 is overlapped by box 0.
    assert np.allclose(rows[:, 1], sorted(scores, reverse=True), atol=2e-2)


def test_matrix_nms_continues_after_an_image_without_boxes() -> None:
    boxes, scores = np.concatenate([BOXES, BOXES]), np.concatenate([SCORES * 0, SCORES])
    assert make("MatrixNms").compute(boxes, scores)[2].tolist() == [0, 8]


@pytest.mark.parametrize(
    ("box", "other", "expected"),
    [
        ([0, 0, 2, 2, 0], [0, 0, 2, 2, 0], 1),
        ([0, 0, 2, 2, 0], [1, 0, 2, 2, 0], 1 / 3),
        ([0, 0, 2, 2, 0], [0, 0, 2, 2, np.pi / 2], 1),
        ([0, 0, 2, 2, 0], [0, 0, 2, 2, np.pi / 4], 0.7071068),
        ([0, 0, 4, 2, 0], [0, 0, 4, 2, np.pi / 2], 1 / 3),
        ([0, 0, 4, 4, 0.3], [0.2, 0.1, 1, 1, 1.1], 1 / 16),
        ([0, 0, 2, 2, 0], [9, 9, 2, 2, 1], 0),
        ([0, 0, 2, 0, 0], [0, 0, 2, 2, 0], 0),
    ],
)
def test_rotated_overlap(box: list[float], other: list[float], expected: float) -> None:
    output = rotated_iou(np.array(box, np.float32), np.array([other], np.float32))
    assert np.allclose(output, expected, atol=1e-6)


def test_clockwise_turns_matter() -> None:
    boxes = np.array([[[0, 0, 8, 1, 0.7], [0.8, 0.7, 8, 1, 0.7], [2, 2, 8, 1, -0.7]]], np.float32)
    scores = np.array([[[0.9, 0.8, 0.7]]], np.float32)
    inputs = (boxes, scores, np.array(3), np.float32(0.3), np.float32(0))
    assert make("NMSRotated").compute(*inputs)[0][:, 2].tolist() == [0, 2]
    assert make("NMSRotated", clockwise=False).compute(*inputs)[0][:, 2].tolist() == [0, 1, 2]


def test_blocks_of_rotated_boxes_overlap_like_single_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    boxes = (rng.random((20, 5)) * [20, 20, 9, 9, 3]).astype(np.float32)
    single = np.stack([rotated_iou(box, boxes) for box in boxes])
    assert 0 < np.count_nonzero(single) < single.size
    monkeypatch.setattr(nms_rotated, "TOGETHER", 7)
    np.testing.assert_allclose(rotated_iou(boxes[:, None], boxes), single, rtol=1e-6)


@pytest.mark.parametrize("decay", ["linear", "gaussian"])
def test_blocks_of_boxes_decay_like_all_at_once(decay: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    boxes = np.sort(rng.random((1, 20, 2, 2)).astype(np.float32), 2).reshape(1, 20, 4)
    op, scores = make("MatrixNms", decay_function=decay), rng.random((1, 1, 20)).astype(np.float32)
    at_once = op.compute(boxes, scores)
    monkeypatch.setattr(class_nms, "TOGETHER", 3)
    for output, expected in zip(op.compute(boxes, scores), at_once, strict=True):
        np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("shape", [(7,), (2, 3, 7), (2, 3, 0)])
def test_search_sorted_is_numpys(right: bool, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    sequence, values = np.sort(rng.integers(0, 6, shape), -1), rng.integers(-1, 8, (2, 3, 5))
    output = make("SearchSorted", right_mode=right).compute(sequence, values)
    side = "right" if right else "left"
    for at in np.ndindex(2, 3):
        own = sequence if len(shape) == 1 else sequence[at]
        assert output[at].tolist() == np.searchsorted(own, values[at], side).tolist()


@pytest.mark.parametrize(
    ("sequence", "values", "expected"),
    [
        (Shape(5), Shape(2, 3), Shape(2, 3)),
        (Shape(5), Shape(), Shape()),
        (Shape(5), Shape.unranked(), Shape.unranked()),
        (Shape(2, 5), Shape((1, 4), 3), Shape(2, 3)),
        (Shape(2, 5), Shape.unranked(), Shape(2, None)),
        (Shape(), Shape(2), None),
        (Shape(2, 5), Shape(3, 3), None),
        (Shape(2, 5), Shape(3), None),
        (Shape(2, 5), Shape(), None),
    ],
)
def test_search_sorted_shapes(sequence: Shape, values: Shape, expected: Shape | None) -> None:
    inputs = TensorType(et.f32, sequence), TensorType(et.f32, values)
    if expected is None:
        with pytest.raises(ShapeMismatch):
            make("SearchSorted").infer(*inputs)
    else:
        assert make("SearchSorted").infer(*inputs).shape == expected


def test_topk_rois_fills_with_zeros() -> None:
    output = make("ExperimentalDetectronTopKROIs", max_rois=3).compute(BOXES[0, :2], np.array([0.1, 0.2]))
    assert np.array_equal(output, [BOXES[0, 1], BOXES[0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("type", "boxes", "scores", "more"),
    [
        ("MulticlassNms", Shape(1, 5, 3), Shape(1, 2, 5), ()),
        ("MulticlassNms", Shape(1, 5, 4), Shape(2, 5), ()),
        ("MulticlassNms", Shape(2, 5, 4), Shape(2, 5), (Shape(),)),
        ("MulticlassNms", Shape(2, 5, 4), Shape(2, 6), (Shape(1),)),
        ("MatrixNms", Shape(1, 5, 4), Shape(2, 2, 5), ()),
        ("MatrixNms", Shape(1, 5, 4), Shape(1, 2, 6), ()),
        ("ExperimentalDetectronTopKROIs", Shape(5, 4), Shape(6), ()),
        ("ExperimentalDetectronTopKROIs", Shape(5, 5), Shape(5), ()),
    ],
)
def test_faults(type: str, boxes: Shape, scores: Shape, more: tuple[Shape, ...]) -> None:
    inputs = [TensorType(et.f32, boxes), TensorType(et.f32, scores), *(TensorType(et.i64, s) for s in more)]
    with pytest.raises(ShapeMismatch):
        make(type).infer(*inputs)


@pytest.mark.parametrize(
    ("type", "wrong"),
    [
        ("MulticlassNms", {"nms_eta": 1.5}),
        ("MulticlassNms", {"nms_top_k": -2}),
        ("MatrixNms", {"keep_top_k": -2}),
        ("MatrixNms", {"decay_function": "none"}),
        ("ExperimentalDetectronTopKROIs", {"max_rois": -1}),
    ],
)
def test_invalid_attributes(type: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(AttributeInvalid):
        make(type, **wrong)

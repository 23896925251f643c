"""Prior boxes, proposals and detections: hand-worked cases and the errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, ExecutionError, ShapeMismatch
from irload.ops.detection.boxes import iou, suppress
from irload.ops.detection.candidates import by_score, candidates_of
from irload.ops.registry import resolve

F = np.float32


def make(type: str, version: str = "opset15", **attributes: Any) -> Any:
    return resolve(type, version)[0](**attributes)


@pytest.mark.parametrize(
    ("a", "b", "offset", "bridge", "expected"),
    [
        ((0, 0, 2, 2), (1, 0, 3, 2), 0, False, 1 / 3),
        ((0, 0, 1, 1), (1, 0, 2, 1), 1, False, 2 / 6),
        ((0, 0, 1, 1), (1.5, 0, 2, 1), 1, False, 0),
        ((0, 0, 1, 1), (1.5, 0, 2.5, 1), 1, True, 1 / 7),
        ((0, 0, 0, 1), (0, 0, 1, 1), 0, False, 0),
    ],
)
def test_overlap(a: Any, b: Any, offset: float, bridge: bool, expected: float) -> None:
    assert iou(np.array(a, F), np.array([b], F), offset, bridge=bridge) == pytest.approx([expected])


def test_suppression_with_a_threshold_that_shrinks() -> None:
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 9.2], [0, 0, 10, 8.7], [20, 0, 30, 10]], F)
    assert suppress(boxes, 0.95).tolist() == [0, 1, 2, 3]
    assert suppress(boxes, 0.95, eta=0.9).tolist() == [0, 3]
    assert suppress(boxes, 0.95, 2).tolist() == [0, 1]
    assert suppress(boxes[:0], 0.5).tolist() == []


def test_groups_are_suppressed_separately() -> None:
    boxes = np.array([[0, 0, 4, 4], [0, 0, 4, 3], [0, 0, 4, 3], [0, 0, 4, 4], [9, 9, 10, 10]], F)
    counts = np.array([2, 0, 3])
    assert suppress(boxes, 0.5).tolist() == [0, 4]
    assert suppress(boxes, 0.5, counts=counts).tolist() == [0, 2, 4]
    assert suppress(boxes, 0.5, 1, counts=counts).tolist() == [0, 2]
    assert suppress(boxes[:0], 0.5, counts=counts[:0]).tolist() == []


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(40))
def test_suppression_is_greedy(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The result equals the specification's sequential algorithm, for any number of boxes compared in one step."""
    rng = np.random.default_rng(seed)
    corners = rng.integers(0, 12, (int(rng.integers(0, 300)), 2, 2))
    boxes = np.concatenate([corners.min(1), corners.max(1)], -1).astype(F)
    threshold, eta = rng.choice([0, 1 / 3, 0.5, 0.7, 1]), rng.choice([1, 0.9])
    limit = int(rng.integers(1, 60)) if seed % 2 else None
    if seed % 4 < 2:
        monkeypatch.setattr("irload.ops.detection.boxes.AHEAD", int(rng.integers(1, 100)))
    if seed % 3 == 0:
        monkeypatch.setattr("irload.ops.detection.boxes.PAIRS", 500)
    wanted: list[int] = []
    least = threshold
    for k, box in enumerate(boxes):
        if len(wanted) != limit and all(iou(boxes[j], box[None])[0] <= least for j in wanted):
            wanted.append(k)
            least *= eta if least > 0.5 else 1
    assert suppress(boxes, threshold, limit, eta=eta).tolist() == wanted


def test_many_scores_are_ordered_as_few_are() -> None:
    rng = np.random.default_rng(0)
    odd = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, -np.nan, 1e-40, -1e-40], F)
    for scores in (rng.choice(odd, 3000), rng.standard_normal(3000).astype(F), rng.random(599).astype(F)):
        assert by_score(scores).tolist() == np.argsort(-scores, kind="stable").tolist()


def test_candidates_are_ordered_by_group_then_by_score() -> None:
    scores = np.array([[0.1, 0.9, 0.5, 0.5], [0, 0, 0, 0], [0.3, 0.2, 0.7, 0.8]], F)
    ranked = candidates_of(scores, scores > 0.2)
    assert ranked.group.tolist() == [0, 0, 0, 2, 2, 2]
    assert ranked.box.tolist() == [1, 2, 3, 3, 2, 0]
    assert ranked.score.tolist() == scores[ranked.group, ranked.box].tolist()
    assert ranked.counts.tolist() == [3, 0, 3]
    assert ranked.first(2).box.tolist() == [1, 2, 3, 2]
    assert ranked.first(2).counts.tolist() == [2, 0, 2]
    assert ranked.first(0).box.tolist() == []
    assert ranked.first(-1) is ranked.first(3) is ranked
    assert candidates_of(scores[:0], scores[:0] > 0).counts.tolist() == []
    assert candidates_of(scores[:, :0], scores[:, :0] > 0).counts.tolist() == [0, 0, 0]


def test_prior_box_order_and_variance() -> None:
    attributes = {"min_size": (20.0,), "max_size": (80.0,), "aspect_ratio": (4.0,), "offset": 0.5}
    size = np.array([1, 1]), np.array([100, 100])
    first = make("PriorBox", "opset8", **attributes).compute(*size)
    last = make("PriorBox", "opset8", **attributes, min_max_aspect_ratios_order=False).compute(*size)
    widths = [20, 40, 40]  # min_size, its mean with max_size, and doubled by aspect ratio 4
    heights = [20, 40, 10]
    boxes = first[0].reshape(-1, 4)
    assert boxes[:, 2] - boxes[:, 0] == pytest.approx(np.array(widths) / 100)
    assert boxes[:, 3] - boxes[:, 1] == pytest.approx(np.array(heights) / 100)
    assert np.array_equal(last[0].reshape(-1, 4), boxes[[0, 2, 1]])
    assert np.all(first[1] == F(0.1))


@pytest.mark.parametrize(
    ("attributes", "count"),
    [
        ({"min_size": (1.0, 2.0), "max_size": (3.0,), "aspect_ratio": (2.0, 0.5), "flip": True}, 7),
        ({"min_size": (1.0, 2.0), "aspect_ratio": (2.0,), "scale_all_sizes": False}, 3),
        ({"fixed_size": (8.0, 16.0), "density": (2.0, 1.0), "aspect_ratio": (2.0,)}, 10),
    ],
)
def test_number_of_priors(attributes: dict[str, Any], count: int) -> None:
    op = make("PriorBox", "opset8", **attributes)
    types = TensorType.of(np.array([2, 3])), TensorType.of(np.array([60, 60]))
    assert op.infer(*types).shape == Shape(2, 4 * 6 * count)
    assert op.compute(*(t.value for t in types)).shape == (2, 4 * 6 * count)


def test_uncounted_priors_shift_the_boxes_of_the_next_cell() -> None:
    # Density 2 with two ratios gives eight boxes per cell, but the specification counts seven. So the eighth box of the
    # first cell is counted as the first of the second cell, and the boxes of the second cell follow it.
    op = make("PriorBox", "opset8", fixed_size=(8.0,), density=(2.0,), fixed_ratio=(1.0, 2.0), offset=0.5)
    boxes, variances = op.compute(np.array([1, 2]), np.array([40, 60])).reshape(2, 14, 4)
    half = 4 * math.sqrt(2), 4 / math.sqrt(2)  # half sizes for ratio 2, whose last center in the first cell is (17, 22)
    edges = 17 - half[0], 22 - half[1], 17 + half[0], 22 + half[1]
    assert boxes[7] == pytest.approx(np.array(edges) / [60, 40, 60, 40])
    assert boxes[8] == pytest.approx(boxes[0] + np.array([0.5, 0, 0.5, 0]))
    assert np.all(variances == F(0.1))


def test_max_size_counts_without_scale_all_sizes() -> None:
    op = make("PriorBox", "opset8", min_size=(10.0,), max_size=(20.0,), scale_all_sizes=False, offset=0.5)
    boxes = op.compute(np.array([1, 2]), np.array([40, 60]))[0].reshape(2, 4)
    # The specification counts one box per cell, but there are two: a square of 10 · 40 pixels, and a square of the
    # geometric mean of 10 · 40 and 20 pixels.
    assert boxes[:, 2] - boxes[:, 0] == pytest.approx([400 / 60, math.sqrt(400 * 20) / 60])
    assert boxes[:, 0] + boxes[:, 2] == pytest.approx([0.5, 0.5])


def test_fewer_priors_than_counted_are_refused() -> None:
    with pytest.raises(ExecutionError):
        make("PriorBox", "opset8", min_size=(10.0,), density=(2.0,)).compute(np.array([1, 1]), np.array([60, 60]))


def test_clustered_priors_clip_by_default() -> None:
    op = make("PriorBoxClustered", "opset1", width=(50.0,), height=(20.0,), offset=0.5, variance=(0.1, 0.2, 0.3, 0.4))
    output = op.compute(np.array([1, 2]), np.array([40, 80]))
    assert output[0] == pytest.approx([0, 0.25, 0.5625, 0.75, 0.4375, 0.25, 1, 0.75])
    assert output[1] == pytest.approx([0.1, 0.2, 0.3, 0.4] * 2)


def test_prior_grid() -> None:
    priors, features, image = np.array([[-1, -2, 1, 2]], F), np.zeros((1, 1, 1, 2), F), np.zeros((1, 3, 8, 8), F)
    op = make("ExperimentalDetectronPriorGridGenerator", flatten=True)
    assert op.compute(priors, features, image).tolist() == [[1, 2, 3, 6], [5, 2, 7, 6]]


PROPOSAL: dict[str, Any] = {
    "base_size": 4,
    "pre_nms_topn": 9,
    "post_nms_topn": 3,
    "nms_thresh": 0.5,
    "feat_stride": 8,
    "ratio": (1.0,),
    "scale": (2.0,),
    "min_size": 1,
}


def test_proposal_ends_with_a_mark() -> None:
    scores = np.array([0.5, 0.5, 0.2, 0.9], F).reshape(1, 2, 1, 2)
    rows, best = make("Proposal", "opset4", **PROPOSAL).compute(
        scores, np.zeros((1, 4, 1, 2), F), np.array([20, 20, 1], F)
    )
    # The anchor starts at −2 and has 8 pixels; decoded boxes end one pixel later. The two boxes overlap in one column.
    assert rows.tolist() == [[0, 6, 0, 14, 6], [0, 0, 0, 6, 6], [-1, 0, 0, 0, 0]]
    assert best == pytest.approx([0.9, 0.2, 0])


def test_proposal_too_small_scores_nothing() -> None:
    op = make("Proposal", "opset4", **{**PROPOSAL, "min_size": 8})
    scores = np.array([0.5, 0.5, 0.2, 0.9], F).reshape(1, 2, 1, 2)
    assert op.compute(scores, np.zeros((1, 4, 1, 2), F), np.array([20, 20, 1], F))[1].tolist() == [0, 0, 0]


def test_generate_proposals_leaves_small_ones_out() -> None:
    anchors = np.array([[0, 0, 8, 8], [10, 10, 12, 12]], F).reshape(1, 1, 2, 4)
    inputs = np.array([[40, 40, 2]], F), anchors, np.zeros((1, 8, 1, 1), F), np.array([0.4, 0.6], F).reshape(1, 2, 1, 1)
    limits: dict[str, Any] = {"nms_threshold": 0.5, "post_nms_count": 5, "pre_nms_count": 5}
    rois, scores, counts = make("GenerateProposals", min_size=2.0, **limits).compute(*inputs)
    assert (rois.tolist(), counts.tolist()) == ([[0, 0, 8, 8]], [1])
    assert scores == pytest.approx([0.4])
    assert make("GenerateProposals", min_size=1.0, **limits).compute(*inputs)[2].tolist() == [2]
    fixed = make("ExperimentalDetectronGenerateProposalsSingleImage", min_size=4.0, **limits)
    boxes, best = fixed.compute(inputs[0][0], anchors.reshape(2, 4), inputs[2][0], inputs[3][0])
    assert (boxes.shape, best.tolist()) == ((5, 4), pytest.approx([0.4, 0, 0, 0, 0]))


SSD: dict[str, Any] = {"keep_top_k": (-1,), "nms_threshold": 0.5, "normalized": True}
PRIORS = np.array([[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.45], [0.5, 0.5, 1, 1]], F).ravel()
SSD_INPUTS = (
    np.zeros((1, 12), F),
    np.array([[0.1, 0.9, 0.1, 0.8, 0.3, 0.7]], F),
    np.stack([PRIORS, np.full(12, F(0.1))])[None],
)


@pytest.mark.parametrize(
    ("attributes", "scores", "labels"),
    [
        ({}, [0.9, 0.7, -1], [1, 1]),
        ({"nms_threshold": 0.95}, [0.9, 0.8, 0.7], [1, 1, 1]),
        ({"keep_top_k": (1,)}, [0.9], [1]),
        ({"confidence_threshold": 0.75}, [0.9, -1], [1]),
        ({"decrease_label_id": True}, [0.9, 0.7, -1], [0, 0]),
        ({"background_label_id": -1, "keep_top_k": (3,)}, [0.3, 0.9, 0.7], [0, 1, 1]),
    ],
)
def test_detection_output(attributes: dict[str, Any], scores: list[float], labels: list[int]) -> None:
    rows = make("DetectionOutput", "opset8", **{**SSD, **attributes}).compute(*SSD_INPUTS)[0, 0]
    confidences = [float(row[2]) if row[0] >= 0 else -1 for row in rows][: len(scores)]
    assert confidences == pytest.approx(scores)
    assert rows[: len(labels), 1].tolist() == labels


def test_detection_output_decodes_centers() -> None:
    logits = np.zeros((1, 12), F)
    logits[0, :4] = [1, 0, np.log(2) * 10, 0]
    center = make("DetectionOutput", "opset8", **SSD, code_type="caffe.PriorBoxParameter.CENTER_SIZE")
    row = center.compute(logits, *SSD_INPUTS[1:])[0, 0, 0]
    assert row[3:] == pytest.approx([0.3 - 0.5, 0, 0.3 + 0.5, 0.5], abs=1e-6)


def test_detectron_output_orders_by_class_or_by_score() -> None:
    shared: dict[str, Any] = {"score_threshold": 0.1, "nms_threshold": 0.5, "max_delta_log_wh": 4.0, "num_classes": 3}
    rois, scores = np.array([[0, 0, 9, 9], [20, 20, 29, 29]], F), np.array([[0, 0.4, 0.9], [0, 0.05, 0.8]], F)
    inputs = rois, np.zeros((2, 12), F), scores, np.array([[50, 50, 1]], F)
    type = "ExperimentalDetectronDetectionOutput"
    boxes, classes, best = make(type, **shared, post_nms_count=5, max_detections_per_image=4).compute(*inputs)
    assert (classes.tolist(), best) == ([1, 2, 2, 0], pytest.approx([0.4, 0.9, 0.8, 0]))
    assert boxes[1].tolist() == [0, 0, 9, 9]
    _, classes, best = make(type, **shared, post_nms_count=5, max_detections_per_image=2).compute(*inputs)
    assert (classes.tolist(), best) == ([2, 2], pytest.approx([0.9, 0.8]))


@pytest.mark.parametrize(
    ("type", "attributes", "shapes"),
    [
        ("Proposal", PROPOSAL, [Shape(1, 3, 2, 2), Shape(1, 4, 2, 2), Shape(3)]),
        ("Proposal", PROPOSAL, [Shape(1, 2, 2, 2), Shape(1, 8, 2, 2), Shape(3)]),
        ("Proposal", PROPOSAL, [Shape(1, 2, 2, 2), Shape(1, 4, 2, 2), Shape(5)]),
        ("DetectionOutput", SSD, [Shape(1, 13), Shape(1, 6), Shape(1, 2, 12)]),
        ("DetectionOutput", SSD, [Shape(1, 12), Shape(1, 7), Shape(1, 2, 12)]),
        ("DetectionOutput", SSD, [Shape(1, 12), Shape(2, 6), Shape(1, 2, 12)]),
        ("DetectionOutput", SSD, [Shape(1, 12), Shape(1, 6), Shape(1, 1, 12)]),
        ("DetectionOutput", SSD, [Shape(1, 12), Shape(1, 6), Shape(1, 2, 12), Shape(1, 6)]),
        ("GenerateProposals", {"post_nms_count": 1, "pre_nms_count": 1},
         [Shape(1, 3), Shape(2, 2, 1, 4), Shape(1, 4, 2, 2), Shape(1, 2, 2, 2)]),
        ("GenerateProposals", {"post_nms_count": 1, "pre_nms_count": 1}, [Shape(1, 3), Shape(), Shape(), Shape()]),
    ],
)  # fmt: skip
def test_shape_faults(type: str, attributes: dict[str, Any], shapes: list[Shape]) -> None:
    with pytest.raises(ShapeMismatch):
        make(type, **attributes).infer(*(TensorType(et.f32, shape) for shape in shapes))


@pytest.mark.parametrize(
    ("type", "attributes"),
    [
        ("PriorBox", {"variance": (0.1, 0.2)}),
        ("PriorBox", {"fixed_size": (8.0,)}),
        ("PriorBoxClustered", {"width": (1.0,), "height": (1.0, 2.0)}),
        ("DetectionOutput", {**SSD, "keep_top_k": ()}),
        ("DetectionOutput", {**SSD, "code_type": "corner"}),
        ("ExperimentalDetectronDetectionOutput", {"num_classes": 2, "deltas_weights": (1.0,)}),
    ],
)
def test_invalid_attributes(type: str, attributes: dict[str, Any]) -> None:
    with pytest.raises(AttributeInvalid):
        make(type, **attributes)


def test_the_framework_of_a_proposal_is_checked_by_inference() -> None:
    proposal = make("Proposal", **{**PROPOSAL, "framework": "caffe"})
    with pytest.raises(AttributeInvalid, match="framework must be tensorflow or empty, found 'caffe'"):
        proposal.infer(*(TensorType(et.f32, Shape(*s)) for s in ((1, 2, 2, 2), (1, 4, 2, 2), (3,))))

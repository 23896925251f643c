"""Random cases of MulticlassNms, MatrixNms, NMSRotated, SearchSorted and ExperimentalDetectronTopKROIs."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from tests.harness.case import Array, Case, Random, cases, const, param
from tests.harness.material import INDICES, pick, random_array, random_shape
from tests.ops.detection.material import random_boxes, random_scores

SCORED = (et.f32, et.f32, et.f16)


def class_attributes(rng: Random, classes: int) -> dict[str, Any]:
    """A random selection of the attributes that MulticlassNms and MatrixNms share."""
    every = {
        "sort_result_type": pick(rng, ["none", "score", "classid"]),
        "sort_result_across_batch": pick(rng, [True, False]),
        "output_type": pick(rng, INDICES),
        "score_threshold": pick(rng, [0.0, 0.201]),
        "nms_top_k": int(pick(rng, [-1, 1, 2, 4, 6])),
        "keep_top_k": int(pick(rng, [-1, 1, 2, 4, 8])),
        "background_class": int(pick(rng, [-1, 7, 0 if classes > 1 else 8])),
        "normalized": pick(rng, [True, False]),
    }
    return {name: value for name, value in every.items() if rng.random() < 0.7}


def scores_of(rng: Random, shape: tuple[int, ...], element: ElementType) -> Array:
    """Scores with which at least one box of the last class is selected: otherwise OpenVINO returns no counts."""
    scores = random_scores(rng, shape, element)
    scores[(0,) * (len(shape) - 2) + (-1, 0)] = 1
    return scores


@cases("MulticlassNms", "opset8", "opset9")
def multiclass(rng: Random, version: str) -> Case:
    element = pick(rng, SCORED)
    images, classes, count = *random_shape(rng, 2, 1, 3), int(rng.integers(1, 9))
    attributes = class_attributes(rng, classes) | {"iou_threshold": pick(rng, [0.3001, 0.5001, 0.7001])}
    if rng.random() < 0.5:
        attributes["nms_eta"] = pick(rng, [1.0, 0.9, 0.6])
    own = version == "opset9" and rng.random() < 0.5
    if not own:
        boxes = random_boxes(rng, (images, count), element, scale=20)
        inputs = [param(boxes, element), param(scores_of(rng, (images, classes, count), element), element)]
        return Case("MulticlassNms", version, inputs, attributes, 3)
    each = rng.integers(0, 5, images) + (np.arange(images) == 0)
    count = int(each.sum())
    boxes = random_boxes(rng, (classes, count), element, scale=20)
    inputs = [
        param(boxes, element),
        param(scores_of(rng, (classes, count), element), element),
        pick(rng, (param, const))(each, pick(rng, INDICES)),
    ]
    return Case("MulticlassNms", version, inputs, attributes, 3)


@cases("MatrixNms", "opset8")
def matrix(rng: Random, version: str) -> Case:
    element = pick(rng, SCORED)
    images, classes, count = *random_shape(rng, 2, 1, 3), int(rng.integers(1, 9))
    attributes = class_attributes(rng, classes)
    if attributes.get("sort_result_type") == "classid":
        attributes["sort_result_across_batch"] = True  # only irload sorts by class within an image: see deviations
    if rng.random() < 0.6:
        attributes["decay_function"] = pick(rng, ["linear", "gaussian"])
        attributes["gaussian_sigma"] = pick(rng, [0.5, 2.0])
    if rng.random() < 0.4:
        attributes["post_threshold"] = pick(rng, [0.0, 0.1, 0.4])
    boxes = random_boxes(rng, (images, count), element, scale=20)
    inputs = [param(boxes, element), param(scores_of(rng, (images, classes, count), element), element)]
    return Case("MatrixNms", version, inputs, attributes, 3)


@cases("NMSRotated", "opset13")
def rotated(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f32, et.f16, et.bf16))
    batches, classes, count = *random_shape(rng, 2, 1, 3), int(rng.integers(1, 9))
    boxes = random_boxes(rng, (batches, count), center=True, scale=10)
    boxes = np.concatenate([boxes, rng.uniform(-4, 4, (batches, count, 1))], -1).astype(element.dtype)
    tail = () if rng.random() < 0.6 else (1,)
    make = pick(rng, (const, const, param))
    inputs = [
        param(boxes, element),
        param(random_scores(rng, (batches, classes, count), element), element),
        make(np.full(tail, rng.integers(1, 6)), pick(rng, INDICES)),
        make(np.full(tail, rng.uniform(0.05, 0.8)), et.f32),
        make(np.full(tail, rng.uniform(0, 0.5)), et.f32),
    ]
    attributes: dict[str, Any] = {}
    if rng.random() < 0.7:
        attributes = {"sort_result_descending": pick(rng, [True, False]), "output_type": pick(rng, INDICES)}
    if rng.random() < 0.6:
        attributes["clockwise"] = pick(rng, [True, False])
    return Case("NMSRotated", version, inputs, attributes, 3)


@cases("SearchSorted", "opset15")
def search_sorted(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f16, et.bf16, et.i32, et.i64, et.i8, et.u8))
    values = random_shape(rng, (0, 4), 1, 4)
    shared = not values or rng.random() < 0.4
    length = int(rng.integers(1, 7))
    sequence = np.sort(np.round(random_array(rng, (() if shared else values[:-1]) + (length,), element).astype(float)))
    wanted = np.round(random_array(rng, values, element).astype(float))
    attributes = {"right_mode": pick(rng, [True, False]), "output_type": pick(rng, INDICES)}
    kept = {name: value for name, value in attributes.items() if rng.random() < 0.7}
    return Case("SearchSorted", version, [param(sequence, element), param(wanted, element)], kept)


@cases("ExperimentalDetectronTopKROIs", "opset6")
def topk_rois(rng: Random, version: str) -> Case:
    element = pick(rng, (et.f32, et.f16, et.bf16))
    count = int(rng.integers(1, 9))
    inputs = [
        param(random_boxes(rng, (count,), element, scale=20), element),
        param(random_scores(rng, (count,), element), element),
    ]
    return Case("ExperimentalDetectronTopKROIs", version, inputs, {"max_rois": int(rng.integers(1, count + 1))})

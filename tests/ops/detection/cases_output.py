"""Random cases of DetectionOutput and ExperimentalDetectronDetectionOutput."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core import element as et
from tests.harness.case import Array, Case, Random, cases, param
from tests.harness.material import pick
from tests.ops.detection.material import random_boxes, random_scores


def priors(rng: Random, batches: int, count: int, attributes: dict[str, Any]) -> Array:
    """Prior boxes, each preceded by a batch index unless they are normalized, and variances in a second row."""
    normalized = attributes["normalized"]
    boxes = random_boxes(rng, (batches, count), scale=1 if normalized else attributes["input_height"])
    if not normalized:
        boxes = np.concatenate([np.zeros((batches, count, 1)), boxes], -1)
    rows = boxes.reshape(batches, 1, -1)
    if attributes["variance_encoded_in_target"]:
        return rows
    variances = np.full(rows.shape, 0.1) + rng.uniform(0, 0.1, rows.shape)
    return np.concatenate([rows, variances], 1)


@cases("DetectionOutput", "opset1", "opset8")
def detection_output(rng: Random, version: str) -> Case:
    images, count, classes = int(rng.integers(1, 3)), int(rng.integers(1, 9)), int(rng.integers(2, 5))
    aux, decreased, shared = rng.random() < 0.3, rng.random() < 0.3, rng.random() < 0.6
    normalized = aux or rng.random() < 0.5  # OpenVINO normalizes refined priors twice: see deviations
    attributes: dict[str, Any] = {
        "background_label_id": 0 if decreased else pick(rng, [0, 0, 1, -1]),
        "top_k": pick(rng, [-1, 3, 100]),
        "variance_encoded_in_target": pick(rng, [True, False]),
        "keep_top_k": pick(rng, [-1, 2, 5, 50]),
        "code_type": f"caffe.PriorBoxParameter.{pick(rng, ['CORNER', 'CENTER_SIZE'])}",
        "share_location": shared,
        "nms_threshold": pick(rng, [0.301, 0.501]),
        "confidence_threshold": pick(rng, [0.0, 0.2003, 0.5003]),
        "clip_after_nms": pick(rng, [True, False]),
        "clip_before_nms": pick(rng, [True, False]),
        "decrease_label_id": decreased,
        "normalized": normalized,
    }
    if not normalized:
        attributes |= {"input_height": 64, "input_width": 64}
    if version == "opset1":
        attributes["num_classes"] = classes
    located = count * 4 * (1 if shared else classes)
    batches = images if aux else pick(rng, [1, images])

    def deltas() -> Any:
        return param(rng.uniform(-0.3, 0.3, (images, located)), et.f32)

    inputs = [
        deltas(),
        param(random_scores(rng, (images, count * classes)), et.f32),
        param(priors(rng, batches, count, attributes), et.f32),
    ]
    if aux:
        inputs += [param(random_scores(rng, (images, count * 2)), et.f32), deltas()]
        attributes["objectness_score"] = 0.2503
    return Case("DetectionOutput", version, inputs, attributes)


@cases("ExperimentalDetectronDetectionOutput", "opset6")
def detectron_output(rng: Random, version: str) -> Case:
    count, classes = int(rng.integers(1, 9)), int(rng.integers(2, 5))
    attributes = {
        "score_threshold": pick(rng, [0.0, 0.2003]),
        "nms_threshold": pick(rng, [0.301, 0.501]),
        "max_delta_log_wh": 4.135,
        "num_classes": classes,
        "post_nms_count": pick(rng, [2, 5, 100]),
        "max_detections_per_image": pick(rng, [3, 8, 40]),
        "deltas_weights": pick(rng, [[1.0, 1.0, 1.0, 1.0], [10.0, 10.0, 5.0, 5.0]]),
    }
    if rng.random() < 0.5:
        attributes["class_agnostic_box_regression"] = False
    inputs = [
        param(random_boxes(rng, (count,), scale=60), et.f32),
        param(rng.uniform(-0.5, 0.5, (count, 4 * classes)), et.f32),
        param(random_scores(rng, (count, classes)), et.f32),
        param([[50, 55, 1]], et.f32),
    ]
    return Case("ExperimentalDetectronDetectionOutput", version, inputs, attributes, 3)

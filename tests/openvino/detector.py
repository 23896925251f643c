"""A small detector of one input of any size, as SSDs are exported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as op


def save_detector(path: Path) -> None:
    """Write a detector with random weights: one prior box per 8 by 8 pixels, two classes."""
    rng = np.random.default_rng(7)

    def conv(data, outputs, size, stride=1):
        shape = outputs, data.output(0).get_partial_shape()[1].get_length(), size, size
        values = rng.standard_normal(shape) / np.sqrt(shape[1] * size * size)
        edge = [size // 2] * 2
        return op.convolution(data, op.constant(values.astype(np.float32)), [stride, stride], edge, edge, [1, 1])

    def rows(data):
        return op.reshape(op.transpose(data, np.int64([0, 2, 3, 1])), np.int64([0, -1]), True)

    def sides(data):
        return op.slice(op.shape_of(data), *(np.int64([k]) for k in (2, 4, 1)))

    image = op.parameter([1, 3, -1, -1], np.float32, name="image")
    image.output(0).set_names({"image"})
    features = op.relu(conv(op.multiply(image, op.constant(np.float32(1 / 64))), 16, 3, 8))
    scores = op.softmax(op.reshape(rows(conv(features, 2, 3)), np.int64([0, -1, 2]), True), -1)
    attributes = {"width": np.float32([20]), "height": np.float32([14]), "step": 8.0, "offset": 0.5}
    attributes["variance"] = np.float32([0.1, 0.1, 0.2, 0.2])
    priors = op.unsqueeze(op.prior_box_clustered(sides(features), sides(image), attributes), np.int64(0))
    classes = op.reshape(scores, np.int64([0, -1]), True)
    limits = {"background_label_id": 0, "top_k": 20, "keep_top_k": [10], "nms_threshold": 0.4, "num_classes": 2}
    ways = {"code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "share_location": True, "confidence_threshold": 0.3}
    boxes = op.detection_output(rows(conv(features, 4, 3)), classes, priors, limits | ways | {"normalized": True})
    boxes.output(0).set_names({"boxes"})
    ov.save_model(ov.Model([boxes], [image]), path, compress_to_fp16=False)

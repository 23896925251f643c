"""Writes small random models with the metadata that openvino-model-api reads: python export_model_api.py FOLDER."""

import sys
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops

folder = Path(sys.argv[1])
generator = np.random.default_rng(5)
IMAGE = {"mean_values": [120.5, 110.0, 100.25], "scale_values": [58.0, 57.0, 56.0], "reverse_input_channels": True}


def random(*shape):
    return ops.constant(generator.normal(0, 1, shape).astype(np.float32))


def convolution(x, channels, stride=1):
    scale = ops.constant(np.float32((9 * x.get_partial_shape()[1].get_length()) ** -0.5))
    kernel = ops.multiply(random(channels, x.get_partial_shape()[1].get_length(), 3, 3), scale)
    return ops.convolution(x, kernel, [stride, stride], [1, 1], [1, 1], [1, 1]).output(0)


def features():
    image = ops.parameter([1, 3, 48, 64], ov.Type.f32, name="image")
    image.output(0).set_names({"image"})
    x = ops.relu(convolution(image.output(0), 8, 2)).output(0)
    return image, ops.relu(convolution(x, 16)).output(0)


def pooled(x):
    return ops.reshape(ops.reduce_mean(x, [2, 3], False), [1, 16], False)


def save(name, image, results, **metadata):
    for output, node in results.items():
        node.output(0).set_names({output})
    model = ov.Model([*results.values()], [image], name)
    for key, value in metadata.items():
        model.set_rt_info(value, ["model_info", key])
    ov.save_model(model, folder / f"{name}.xml", compress_to_fp16=False)


for mode in ("standard", "fit_to_window", "fit_to_window_letterbox", "crop"):
    image, x = features()
    logits = ops.matmul(pooled(x), random(16, 5), False, False)
    labels = {"model_type": "Classification", "labels": "cat dog bird fish cow", "topk": 3}
    save(f"classifier_{mode}", image, {"logits": logits}, resize_type=mode, **labels, **IMAGE)

image, x = features()
scores = ops.sigmoid(ops.reshape(ops.matmul(pooled(x), random(16, 30), False, False), [1, 6, 5], False))
boxes = ops.multiply(scores, ops.constant(np.array([[[64, 48, 64, 48, 1]]], np.float32)))
labels = ops.squeeze(ops.topk(scores, ops.constant(1), 2, "max", "none").output(1), [2])
metadata = {"model_type": "ssd", "labels": "a b c d e", "confidence_threshold": 0.1, "pad_value": 114}
save("detector", image, {"boxes": boxes, "labels": labels}, resize_type="fit_to_window_letterbox", **metadata, **IMAGE)

image, x = features()
sizes, axes = ops.constant(np.array([48, 64])), ops.constant(np.array([2, 3]))
masks = ops.softmax(ops.interpolate(convolution(x, 4), sizes, "linear_onnx", "sizes", axes=axes), 1)
metadata = {"model_type": "Segmentation", "labels": "x y z", "soft_threshold": 0.3, "blur_strength": 3}
save("segmenter", image, {"masks": masks}, return_soft_prediction=True, **metadata, **IMAGE)

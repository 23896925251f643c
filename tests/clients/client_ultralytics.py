"""ultralytics: AutoBackend on the folders of a detector, a segmenter and a classifier, and predictions of YOLO."""

import numpy as np
import torch
from ultralytics import YOLO
from ultralytics.nn.autobackend import AutoBackend


def outputs(folder):
    generator = np.random.default_rng(3)
    image = generator.random((1, 3, 64, 64), dtype=np.float32)
    arrays = {}
    for name in ("yolov8n", "yolo11n-seg", "yolov8n-cls"):
        backend = AutoBackend(f"{folder}/{name}_openvino_model", device=torch.device("cpu"))
        results = backend(torch.from_numpy(image))
        for k, result in enumerate(results if isinstance(results, list | tuple) else [results]):
            arrays[f"{name} {k}"] = result.numpy()
    photo = generator.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    options = {"imgsz": 64, "verbose": False, "save": False}
    (result,) = YOLO(f"{folder}/yolov8n_openvino_model", task="detect").predict(photo, conf=0.5, **options)
    arrays["boxes"] = result.boxes.data.numpy()
    (result,) = YOLO(f"{folder}/yolov8n-cls_openvino_model", task="classify").predict(photo, **options)
    arrays["probabilities"] = result.probs.data.numpy()
    return arrays

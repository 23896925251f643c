"""Exports YOLO models with random weights by ultralytics: python export_ultralytics.py FOLDER."""

import os
import sys

import torch
from ultralytics import YOLO

os.chdir(sys.argv[1])
torch.manual_seed(3)
for name in ("yolov8n", "yolo11n-seg", "yolov8n-cls"):
    model = YOLO(f"{name}.yaml")
    for module in model.model.modules():
        if isinstance(module, torch.nn.Conv2d):  # ultralytics' smaller initial weights give constant outputs
            torch.nn.init.kaiming_normal_(module.weight)
            if module.bias is not None:  # the initial bias makes all class scores close to 0
                torch.nn.init.zeros_(module.bias)
    model.export(format="openvino", imgsz=64)

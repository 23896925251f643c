"""The clients: libraries that import OpenVINO."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CLIENTS", "Client"]


@dataclass(frozen=True)
class Client:
    """A library: `requires` are its packages, `runtime` the version of OpenVINO that it is compared with.

    `uses` names the classes that client_NAME.py runs.
    """

    name: str
    uses: tuple[str, ...]
    requires: tuple[str, ...]
    runtime: str = "openvino==2026.4.*"


CLIENTS = (
    Client(
        "optimum",
        ("OVModelForSequenceClassification", "OVModelForFeatureExtraction", "OVModelForCausalLM"),
        ("optimum-intel[openvino]==2.2.*",),
    ),
    Client(
        "model_api",
        ("ClassificationModel", "SSD", "SegmentationModel", "AsyncPipeline"),
        ("openvino-model-api==0.4.*",),
    ),
    Client("ultralytics", ("AutoBackend", "YOLO"), ("ultralytics==8.4.*",)),
    # It imports openvino.runtime, which current wheels of OpenVINO no longer contain.
    Client("rapidocr", ("RapidOCR",), ("rapidocr-openvino==1.4.*",), "openvino==2024.0.*"),
)

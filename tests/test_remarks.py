"""Violations of the specification that OpenVINO accepts: run as OpenVINO does, with a warning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest

import irload
from models.ir import Graph, Ref
from tests.harness.runtime import core

EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


def prelu(graph: Graph) -> list[Ref]:
    """f16 data and an f32 slope, as Model Optimizer 2021 wrote them."""
    data = graph.parameter("x", "f16", [1, 3, 4])
    return graph.layer("PReLU", [data, graph.constant(np.array([0.5, 2, -1], np.float32))], [("f16", [1, 3, 4])])


def detection_output(graph: Graph) -> list[Ref]:
    """Boxes and scores of f16, priors of f32."""
    boxes = graph.parameter("x", "f16", [1, 12])
    scores = graph.constant(np.array([[0.1, 0.9, 0.3, 0.7, 0.6, 0.4]], np.float16))
    priors = np.linspace(0.1, 0.9, 12), np.full(12, 0.1)
    attributes = {"num_classes": 2, "keep_top_k": 3, "top_k": 3, "nms_threshold": 0.5, "normalized": "true"}
    attributes |= {"code_type": "caffe.PriorBoxParameter.CORNER", "share_location": "true"}
    inputs = [boxes, scores, graph.constant(np.array([priors], np.float32))]
    return graph.layer("DetectionOutput", inputs, [("f16", [1, 1, 3, 7])], attributes=attributes)


def explicit(graph: Graph) -> list[Ref]:
    """auto_broadcast "explicit", which old files have instead of "none"; the axis is ignored."""
    data = graph.parameter("x", "f16", [1, 3, 4])
    attributes = {"auto_broadcast": "explicit", "auto_broadcast.auto_broadcast_axis": -7}
    return graph.layer("Multiply", [data, data], [("f16", [1, 3, 4])], attributes=attributes)


def reverse(graph: Graph) -> list[Ref]:
    """A negative axis, as openvino_tokenizers writes it for SentencePiece models with padding on the left."""
    data = graph.parameter("x", "f32", [1, 3, 4])
    axes = graph.constant(np.array([-1, 2, 1], np.int64))
    return graph.layer("Reverse", [data, axes], [("f32", [1, 3, 4])], attributes={"mode": "index"})


@pytest.mark.parametrize("build", [prelu, detection_output, explicit, reverse])
def test_accepted_with_a_warning_and_run_as_the_runtime_does(build: object, tmp_path: Path):
    graph = Graph()
    assert callable(build)
    outputs = build(graph)
    graph.result(outputs[0])
    file = tmp_path / "model.xml"
    file.write_text(f'<net name="m" version="10">{graph.text()}</net>')
    file.with_suffix(".bin").write_bytes(bytes(graph.blob) or b"\0")
    model = irload.read_model(file)
    assert sum("by the specification" in w for w in model.warnings) == 1
    findings = irload.check(file).findings
    assert [f.code for f in findings if f.severity == "warning"].count("IR311") == 1
    assert not [f for f in findings if f.severity == "error"]

    x = (np.arange(12, dtype=np.float32) / 8 - 0.75).reshape(model.inputs[0].shape)
    expected = core().compile_model(core().read_model(file), "CPU", EXACT)(x)[0]
    for optimize in (False, True):
        output = irload.compile_model(model, optimize=optimize)(x)[0]
        assert output.dtype == expected.dtype == np.float32
        assert np.allclose(output, expected, atol=2e-3)


def test_inferring_again_warns_once():
    graph = Graph()
    graph.result(prelu(graph)[0])
    model = irload.read_model(f'<net name="m" version="11">{graph.text()}</net>'.encode(), bytes(graph.blob))
    count = len(model.warnings)
    assert len(model.reshape([2, 3, 4]).warnings) == count == 1
    assert ov.Shape(model.outputs[0].shape) == ov.Shape([2, 3, 4])

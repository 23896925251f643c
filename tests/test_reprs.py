"""The repr of models, requests and results: short, but sufficient to identify them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irload

MODELS = Path(__file__).parents[1] / "models"


def test_reprs_are_short_and_useful() -> None:
    compiled = irload.compile_model(MODELS / "digits" / "model.xml", 2)
    assert repr(compiled.model) == "<Model 'digits' of 23 layers: image f32[?,1,8,8] → probabilities f32[?,10]>"
    assert repr(compiled) == f"<CompiledModel of {compiled.model!r}, 2 threads>"
    result = compiled(np.zeros((3, 1, 8, 8), np.float32))
    assert repr(result) == "<Result probabilities: f32[3,10]>"
    assert repr(compiled.inputs) == "[<image f32[?,1,8,8]>]"


def test_a_request_shows_its_state() -> None:
    request = irload.compile_model(MODELS / "state" / "model.xml").create_infer_request()
    assert "state" not in repr(request).partition(":")[2]
    request.infer(np.ones((1, 3), np.float32))
    assert repr(request).endswith(", state total [1, 3]>")


def test_bodies_and_large_models(tmp_path: Path) -> None:
    model = irload.read_model(MODELS / "loop" / "model.xml")
    assert all(len(repr(graph)) < 400 for graph in model.walk())


LAYER = '<layer id="{k}" name="{name}" type="{kind}" version="opset1">{data}{ports}</layer>'


def test_outputs_without_any_name(tmp_path: Path) -> None:
    """If neither the tensor nor the Result has a name, the output has a name by position, which lookups accept."""
    text = (MODELS / "conv_openvino" / "model.xml").read_text("utf-8").replace('name="Result_3"', 'name=""')
    assert 'name=""' in text
    text = text.replace(' names="out"', "").replace(' output_names="out"', "")
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    compiled = irload.compile_model(irload.read_model(tmp_path / "m.xml", MODELS / "conv_openvino" / "model.bin"))
    (port,) = compiled.outputs
    assert port.any_name
    result = compiled(np.zeros((1, 1, 6, 6), np.float32))
    assert result[port.any_name] is result[0]
    assert result["result_0"] is result[0]
    assert compiled.output("result_0").index == 0
    assert compiled({"parameter_0": np.zeros((1, 1, 6, 6), np.float32)})[0].shape == (1, 1, 3, 3)
    with pytest.raises(KeyError, match=port.any_name):
        result["none"]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ((), "expected 1 input ('image' f32[?,1,8,8]), found none"),
        (([],), "expected 1 input ('image' f32[?,1,8,8]), found none"),
        (
            ([np.zeros((1, 1, 8, 8), np.float32)] * 2,),
            "expected 1 input ('image' f32[?,1,8,8]), found 2; np.concatenate makes one batch of several arrays",
        ),
    ],
)
def test_the_wrong_number_of_inputs(inputs: tuple[object, ...], words: str) -> None:
    compiled = irload.compile_model(MODELS / "digits" / "model.xml")
    with pytest.raises(irload.InputInvalid) as raised:
        compiled(*inputs)
    assert str(raised.value) == words

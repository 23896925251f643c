"""rename, strip, add_output: names of ports, layers and tensors."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload import edit
from tests.edit.conftest import MODELS


def names(model: irload.Model) -> list[str]:
    return [n.name for n in model.nodes]


def test_ports_and_layers_are_renamed(digits, image) -> None:
    model = edit.rename(digits, {"image": "photo", "probabilities": "shares", "pool1": "features"})
    assert [sorted(p.names) for p in (*model.inputs, *model.outputs)] == [["photo"], ["shares"]]
    assert "features" in names(model)
    compiled = irload.compile_model(model)
    np.testing.assert_array_equal(compiled({"photo": image})["shares"], irload.compile_model(digits)(image)[0])


def test_wildcards_keep_their_text(digits) -> None:
    model = edit.rename(digits, {"conv*/weights": "w*", "dense*": "head*"})
    assert {"w0", "w1", "head", "head/bias", "head/weights"} <= set(names(model))
    assert "conv0/bias" in names(model)


def test_names_are_exchanged(digits) -> None:
    model = edit.rename(digits, {"pool0": "pool1", "pool1": "pool0"})
    pools = [n for n in model.nodes if n.type == "MaxPool"]
    assert [n.name for n in pools] == ["pool1", "pool0"]


def test_names_in_bodies_are_renamed() -> None:
    model = edit.rename(irload.read_model(MODELS / "loop" / "model.xml"), {"doubled": "twice"})
    assert "twice" in [n.name for _, _, body in model.subgraphs() for n in body.nodes]


@pytest.mark.parametrize(
    ("mapping", "fact"),
    [
        ({"imag": "x"}, r"no layer or tensor 'imag'; did you mean 'image'\?"),
        ({"conv*": "c"}, "two layers would have the name 'c'"),
        ({"image": "probabilities"}, "two tensors would have the name 'probabilities'"),
        ({"conv*": "*c*"}, r"'\*c\*' must contain as many \* as 'conv\*'"),
    ],
)
def test_refused_names(digits, mapping, fact) -> None:
    with pytest.raises(irload.InputInvalid, match=fact):
        edit.rename(digits, mapping)


def test_stripped_names_leave_the_ports(digits, image) -> None:
    model = edit.strip(edit.add_output(digits, "pool0"), names=True)
    assert [p.any_name for p in (*model.inputs, *model.outputs)] == ["image", "probabilities", "pool0"]
    inner = [n for n in model.nodes if n.type not in ("Parameter", "Result")]
    assert all(n.name.startswith(f"{n.type}_") for n in inner)
    assert len({n.name for n in model.nodes}) == len(model.nodes)
    np.testing.assert_array_equal(irload.compile_model(model)(image)[0], irload.compile_model(digits)(image)[0])


def test_stripped_metadata_and_unused_layers(tmp_path) -> None:
    text = (MODELS / "digits" / "model.xml").read_text("utf-8")
    relu = '<layer id="99" name="unused" type="Const" version="opset1"><data element_type="f32" shape="1" offset="0" '
    relu += 'size="4"/><output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>'
    text = text.replace("</layers>", relu + "</layers>").replace(
        "</net>", '<rt_info><conversion><tool value="x"/></conversion></rt_info></net>'
    )
    model = irload.read_model(text.encode(), MODELS / "digits" / "model.bin")
    assert "unused" in names(edit.strip(model, unused=False))
    stripped = edit.strip(model)
    assert "unused" not in names(stripped)
    assert stripped.rt_info == model.rt_info != {}
    assert edit.strip(model, rt_info=True).rt_info == {}


def test_outputs_are_added_in_order(digits, image) -> None:
    model = edit.add_output(digits, "pool*", "flat")
    assert [p.any_name for p in model.outputs] == ["probabilities", "pool0", "pool1", "flat"]
    result = irload.compile_model(model)(image)
    np.testing.assert_array_equal(result["flat"].reshape(-1), result["pool1"].reshape(-1))
    with pytest.raises(irload.InputInvalid, match="'softmax' is an output of the model already"):
        edit.add_output(digits, "probabilities")


def test_a_name_that_is_taken_gets_a_number() -> None:
    text = (MODELS / "digits" / "model.xml").read_text("utf-8").replace('names="probabilities"', 'names="pool0"')
    model = irload.read_model(text.encode(), MODELS / "digits" / "model.bin")
    with pytest.raises(irload.InputInvalid, match="already"):  # the tensor of this name precedes the layer
        edit.add_output(model, "pool0")
    assert [p.any_name for p in edit.add_output(model, "pool0:0").outputs] == ["pool0", "pool0_1"]

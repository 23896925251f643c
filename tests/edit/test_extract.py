"""extract: parts between tensors, selected in each way, and cuts that are rejected."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload import edit
from tests.edit.conftest import MODELS

WHOLE = ["image", "probabilities"]


def run(model: irload.Model, *inputs: np.ndarray) -> list[np.ndarray]:
    return list(irload.compile_model(model, optimize=False)(inputs).values())


def test_two_parts_compute_the_results_of_the_model(digits, image) -> None:
    before, after = edit.extract(digits, None, "pool0"), edit.extract(digits, "pool0")
    (middle,) = run(before, image)
    np.testing.assert_array_equal(run(after, middle)[0], run(digits, image)[0])
    assert [str(p.type) for p in after.inputs] == ["f32[?,16,4,4]"]
    assert [p.any_name for p in (*before.inputs, *before.outputs)] == ["image", "pool0"]


def test_only_the_weights_of_the_part_are_kept(digits, tmp_path) -> None:
    irload.save_model(edit.extract(digits, "relu0", "relu1"), tmp_path / "part.xml")
    weights = 4 * (32 * 16 * 9 + 32)
    assert weights <= (tmp_path / "part.bin").stat().st_size <= weights + 64


@pytest.mark.parametrize(
    ("inputs", "outputs", "names"),
    [
        ("image", "probabilities", WHOLE),
        ("scaled", "softmax", ["scaled", "probabilities"]),
        ("0:conv1", "conv1", ["pool0", "conv1"]),
        ("conv1:0", "1:softmax", None),
        ("conv0*", "pool0", ["conv0/bias", "pool0"]),
        ("parameter_0", "result_0", WHOLE),
        (None, ["relu0", "relu1"], ["image", "relu0", "relu1"]),
        (["image"], None, WHOLE),
    ],
)
def test_ways_to_select_tensors(digits, inputs, outputs, names) -> None:
    if names is None:
        with pytest.raises(irload.InputInvalid, match="'1:softmax': SoftMax 'softmax' has 1 inputs"):
            edit.extract(digits, inputs, outputs)
        return
    part = edit.extract(digits, inputs, outputs)
    assert [p.any_name for p in (*part.inputs, *part.outputs)] == names


def test_ports_select_tensors(digits) -> None:
    part = edit.extract(digits, digits.inputs[0], digits.outputs[0])
    assert [p.any_name for p in (*part.inputs, *part.outputs)] == WHOLE


def test_the_original_is_unchanged(digits, image) -> None:
    before = [(n.name, n.op, [o.names for o in n.outputs], list(n.inputs)) for n in digits.nodes]
    expected = run(digits, image)[0]
    edit.extract(digits, "relu0", "relu1")
    assert before == [(n.name, n.op, [o.names for o in n.outputs], list(n.inputs)) for n in digits.nodes]
    np.testing.assert_array_equal(run(digits, image)[0], expected)


def test_a_constant_becomes_an_input(digits, image) -> None:
    part = edit.extract(digits, ["image", "dense/weights"], at_constants=True)
    weights = next(n for n in digits.nodes if n.name == "dense/weights").op.compute()
    np.testing.assert_array_equal(run(part, image, weights)[0], run(digits, image)[0])
    with pytest.raises(irload.InputInvalid, match=r"'dense/weights' depends on constants alone.*--at-constants"):
        edit.extract(digits, ["image", "dense/weights"])


@pytest.mark.parametrize(
    ("inputs", "outputs", "fact"),
    [
        ("pol0", None, r"no layer or tensor 'pol0'; did you mean 'pool0' or 'pool1'\?"),
        ("nothing*", None, r"no layer or tensor matches 'nothing\*'"),
        ("pool1", "relu0", r"no output of the part depends on 'pool1' \(outputs: 'relu0'\)"),
        ("conv1/weights", "conv1", r"'conv1/weights' depends on constants alone"),
        (None, "conv0:3", r"Convolution 'conv0' has 1 outputs"),
    ],
)
def test_refused_cuts(digits, inputs, outputs, fact) -> None:
    with pytest.raises(irload.InputInvalid, match=fact):
        edit.extract(digits, inputs, outputs)


def test_a_path_around_the_cut_is_named() -> None:
    model = irload.read_model(MODELS / "dynamic" / "model.xml")
    shape = next(n for n in model.nodes if n.type == "Concat")
    with pytest.raises(irload.InputInvalid, match=r"depends also on the input 'data' \(Parameter 'data' → Reshape"):
        edit.extract(model, shape.name)
    part = edit.extract(model, [shape.name, "data"])
    x = np.load(MODELS / "dynamic" / "input_0.npy")
    np.testing.assert_array_equal(run(part, np.array([2, -1]), x)[0], run(model, x)[0])


def test_layers_of_bodies_are_not_cut() -> None:
    model = irload.read_model(MODELS / "loop" / "model.xml")
    with pytest.raises(irload.InputInvalid, match="'doubled' is inside the body of Loop 'doubling'"):
        edit.extract(model, None, "doubled")
    with pytest.raises(irload.InputInvalid, match="is a Loop of 2 outputs; name 'doubling:0' or 'doubling:1'"):
        edit.extract(model, None, "doubling")


def test_variables_stay_with_their_reads() -> None:
    model = irload.read_model(MODELS / "state" / "model.xml")
    request = irload.compile_model(edit.extract(model, None, "add")).create_infer_request()
    x = np.array([[1, 2, 3]], np.float32)
    assert [request.infer(x)[0].tolist() for _ in range(2)] == [[[1, 2, 3]], [[2, 4, 6]]]
    assert not edit.extract(model, "add").sinks

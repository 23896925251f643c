"""reshape and set_batch: other shapes, and constants that depend on the batch size."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

import irload
from irload import edit
from tests.edit.conftest import MODELS


def read(model: ov.Model, tmp_path) -> irload.Model:
    ov.serialize(model, tmp_path / "m.xml")
    return irload.read_model(tmp_path / "m.xml")


def run(model: irload.Model, *inputs: np.ndarray) -> list[np.ndarray]:
    return list(irload.compile_model(model)(inputs).values())


def test_reshape_leaves_the_original(digits) -> None:
    fixed = edit.reshape(digits, {"image": [2, 1, 8, 8]})
    assert (fixed.inputs[0].shape, fixed.outputs[0].shape) == ((2, 1, 8, 8), (2, 10))
    assert str(digits.inputs[0].partial_shape) == "[?,1,8,8]"
    assert edit.reshape(digits, "3,1,8,8").outputs[0].shape == (3, 10)
    with pytest.raises(irload.InputInvalid, match="no input named 'x'"):
        edit.reshape(digits, {"x": [1]})
    with pytest.raises(irload.ShapeMismatch):
        edit.reshape(digits, {"image": [1, 3, 8, 8]})


def attention(batch: int) -> ov.Model:
    """Constant shapes as traced from PyTorch: heads merged with the batch, and a class token of one sample."""
    rng = np.random.default_rng(0)
    x = op.parameter([batch, 4, 6], np.float32, name="x")
    token = op.constant(rng.standard_normal((batch, 1, 6)).astype(np.float32))
    rows = op.concat([token, x], 1)
    heads = op.transpose(op.reshape(rows, [batch, 5, 2, 3], False), [0, 2, 1, 3])
    merged = op.reshape(heads, [batch * 2, 5, 3], False)
    scores = op.softmax(op.matmul(merged, merged, False, True), -1)
    mixed = op.reshape(op.matmul(scores, merged, False, False), [batch, 2, -1, 3], False)
    back = op.reshape(op.transpose(mixed, [0, 2, 1, 3]), [batch, 30], False)
    return ov.Model([back], [x])


@pytest.mark.parametrize("size", [3, None, (1, 8)])
def test_constant_shapes_follow_the_batch(size, tmp_path) -> None:
    model = read(attention(1), tmp_path)
    x = np.random.default_rng(1).standard_normal((3, 4, 6)).astype(np.float32)
    expected = np.concatenate([run(model, x[k : k + 1])[0] for k in range(3)])
    changed = edit.set_batch(model, size)
    np.testing.assert_allclose(run(changed, x)[0], expected, atol=1e-5)
    irload.save_model(changed, tmp_path / "changed.xml")
    theirs = ov.Core().compile_model(tmp_path / "changed.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0]
    np.testing.assert_allclose(theirs, expected, atol=1e-4)


@pytest.mark.parametrize("size", [3, None])
def test_initial_states_follow_the_batch(size, tmp_path) -> None:
    rng = np.random.default_rng(0)
    x = op.parameter([1, 4, 6], np.float32, name="x")
    state = op.constant(rng.standard_normal((1, 1, 5)).astype(np.float32))
    w, r, b = (op.constant(rng.standard_normal((1, 20, *k)).astype(np.float32) * 0.3) for k in ((6,), (5,), ()))
    cell = op.lstm_sequence(x, state, state, op.constant(np.int32([4])), w, r, b, 5, "forward")
    model = read(ov.Model([op.squeeze(cell.output(0), np.int64([1]))], [x]), tmp_path)
    samples = rng.standard_normal((3, 4, 6)).astype(np.float32)
    expected = np.concatenate([run(model, samples[k : k + 1])[0] for k in range(3)])
    changed = edit.set_batch(model, size)
    np.testing.assert_allclose(run(changed, samples)[0], expected, atol=1e-5)
    irload.save_model(changed, tmp_path / "changed.xml")
    theirs = ov.Core().compile_model(tmp_path / "changed.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(samples)[0]
    np.testing.assert_allclose(theirs, expected, atol=1e-4)


def test_the_batch_axis_is_that_of_the_layout(tmp_path) -> None:
    x = op.parameter([5, 1, 3], np.float32, name="x")
    x.set_layout(ov.Layout("TNC"))
    model = read(ov.Model([op.reshape(x, [5, 3], False)], [x]), tmp_path)
    changed = edit.set_batch(model, 4)
    assert (changed.inputs[0].shape, changed.outputs[0].shape) == ((5, 4, 3), (5, 12))
    assert edit.set_batch(model, 7, {"x": 0}).inputs[0].shape == (7, 1, 3)


def test_refused_batches(digits, tmp_path) -> None:
    with pytest.raises(irload.InputInvalid, match=r"input 'image' has shape \[\?,1,8,8\], which has no axis 4"):
        edit.set_batch(digits, 3, {"image": 4})
    with pytest.raises(irload.ShapeMismatch, match=r"variable 'total' has shape \[1,3\], the value to store \[2,3\]"):
        edit.set_batch(irload.read_model(MODELS / "state" / "model.xml"), 2)
    x = op.parameter([2, 6], np.float32, name="x")
    turned = op.transpose(op.reshape(x, [2, 3, 2], False), [1, 0, 2])
    model = read(ov.Model([op.reshape(turned, [2, 6], False)], [x]), tmp_path)
    with pytest.raises(irload.ShapeMismatch, match=r"reshapes \[3,2,2\] to \[2, 6\], which mixes the batch"):
        edit.set_batch(model, 3)
    scalar = op.parameter([], np.float32, name="x")
    with pytest.raises(irload.InputInvalid, match="no input has a batch axis"):
        edit.set_batch(read(ov.Model([op.relu(scalar)], [scalar]), tmp_path), 3)


def test_parameters_of_bodies_get_new_declarations(tmp_path) -> None:
    model = irload.read_model(MODELS / "loop" / "model.xml")
    irload.save_model(edit.set_batch(model, 3), tmp_path / "changed.xml")
    assert irload.check(tmp_path / "changed.xml").findings == []
    (loop,) = (n for n in irload.read_model(tmp_path / "changed.xml").nodes if n.type == "Loop")
    declared = [str(n.op.attributes["shape"]) for n in loop.op.body.body.parameters]
    assert "[3,2]" in declared
    assert "[1,2]" not in declared

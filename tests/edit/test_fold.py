"""fold: constants in place of layers that do not depend on inputs; compressed weights stay compressed."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

import irload
from irload import edit
from tests.edit.conftest import MODELS


def types(model: irload.Model) -> list[str]:
    return [n.type for n in model.nodes]


def read(model: ov.Model, tmp_path) -> irload.Model:
    ov.serialize(model, tmp_path / "m.xml")
    return irload.read_model(tmp_path / "m.xml")


def test_shape_computations_fold_for_static_shapes() -> None:
    model = irload.read_model(MODELS / "dynamic" / "model.xml")
    x = np.load(MODELS / "dynamic" / "input_0.npy")
    assert "ShapeOf" in types(edit.fold(model))
    folded = edit.fold(edit.reshape(model, x.shape))
    assert types(folded) == ["Parameter", "Const", "Reshape", "SoftMax", "Result"]
    np.testing.assert_array_equal(irload.compile_model(folded)(x)[0], irload.compile_model(model)(x)[0])


def test_large_constants_are_computed_and_keep_their_names(tmp_path) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((300, 300)).astype(np.float32) for _ in range(2))
    x = op.parameter([1, 300], np.float32, name="x")
    total = op.add(op.constant(a), op.constant(b))
    total.set_friendly_name("total")
    left, right = op.split(op.multiply(total, op.constant(np.float32(2))), 0, 2).outputs()
    model = read(ov.Model([op.matmul(x, total, False, False), op.add(left, right)], [x]), tmp_path)
    folded = edit.fold(model)
    assert types(folded) == ["Parameter", "Const", "MatMul", "Const", "Result", "Result"]
    assert "total" in [n.name for n in folded.nodes]
    data = rng.standard_normal((1, 300)).astype(np.float32)
    folded_output, expected = (irload.compile_model(m)(data) for m in (folded, model))
    for k in range(2):
        np.testing.assert_allclose(folded_output[k], expected[k], atol=1e-4)


def test_layers_with_larger_outputs_than_inputs_are_not_folded(tmp_path) -> None:
    x = op.parameter([1000, 1000], np.float32, name="x")
    wide = op.broadcast(op.constant(np.float32([1])), op.constant(np.int64([1000, 1000])))
    assert "Broadcast" in types(edit.fold(read(ov.Model([op.add(x, wide)], [x]), tmp_path)))


@pytest.mark.parametrize("stored", [np.int8, np.float16])
def test_compressed_weights_stay(stored, tmp_path) -> None:
    x = op.parameter([1, 4], np.float32, name="x")
    weights = op.convert(op.constant(np.arange(8).reshape(2, 4).astype(stored)), "f32")
    scaled = op.multiply(weights, op.constant(np.float32([[0.5], [2]])))
    model = read(ov.Model([op.matmul(x, scaled, False, True)], [x]), tmp_path)
    assert sorted(types(edit.fold(model))) == sorted(types(model))


def test_quantized_weights_stay(tmp_path) -> None:
    x = op.parameter([1, 4], np.float32, name="x")
    low, high = op.constant(np.float32(0)), op.constant(np.float32(8))
    weights = op.fake_quantize(op.constant(np.float32(np.arange(8).reshape(2, 4))), low, high, low, high, 256)
    model = read(ov.Model([op.matmul(x, weights, False, True)], [x]), tmp_path)
    assert "FakeQuantize" in types(edit.fold(model))


def test_an_output_that_is_constant(tmp_path) -> None:
    x = op.parameter([2, 3], np.float32, name="x")
    shape = op.shape_of(x)
    shape.output(0).set_names({"sizes"})
    model = edit.fold(read(ov.Model([shape], [x]), tmp_path))
    assert types(model) == ["Parameter", "Const", "Result"]
    assert irload.compile_model(model)(np.zeros((2, 3), np.float32))["sizes"].tolist() == [2, 3]

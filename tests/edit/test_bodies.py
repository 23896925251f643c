"""fold and convert inside bodies."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

import irload
from irload import edit

WEIGHTS = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
STEPS = 3


@pytest.fixture
def model(tmp_path) -> irload.Model:
    """A Loop whose body multiplies by weights, then adds the iteration number and the sum of two constants."""
    state, number = op.parameter([1, 32], np.float32), op.parameter([1], np.float32)
    product = op.matmul(state, op.constant(WEIGHTS / 8), False, True)
    total = op.add(op.constant(np.float32([1])), op.constant(np.float32([2])))
    raised = op.add(op.add(product, number), total)
    counted = op.add(number, op.constant(np.float32([1])))
    body = ov.Model([op.constant(np.array(True)), raised, counted], [state, number], "body")
    x = op.parameter([1, 32], np.float32, name="x")
    loop = op.loop(op.constant(np.int64(STEPS)), op.constant(np.array(True)))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(state, x.output(0), raised.output(0))
    loop.set_merged_input(number, op.constant(np.float32([0])).output(0), counted.output(0))
    ov.serialize(ov.Model([loop.get_iter_value(raised.output(0), -1)], [x]), tmp_path / "m.xml")
    return irload.read_model(tmp_path / "m.xml")


def body_types(model: irload.Model) -> list[str]:
    (body,) = (body for _, _, body in model.subgraphs())
    return [n.type for n in body.nodes]


def run(model: irload.Model, x: np.ndarray) -> np.ndarray:
    return irload.compile_model(model, optimize=False)(x)[0]


def by_runtime(model: irload.Model, x: np.ndarray, tmp_path) -> np.ndarray:
    irload.save_model(model, tmp_path / "saved.xml")
    return ov.Core().compile_model(tmp_path / "saved.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0]


def test_constants_fold_and_states_do_not(model, tmp_path) -> None:
    x = np.random.default_rng(1).standard_normal((1, 32)).astype(np.float32)
    folded = edit.fold(model)
    assert body_types(model).count("Add") == 4
    assert body_types(folded).count("Add") == 3
    np.testing.assert_allclose(run(folded, x), run(model, x), rtol=1e-6)
    np.testing.assert_allclose(by_runtime(folded, x, tmp_path), run(model, x), rtol=1e-5)


def test_weights_are_quantized(model, tmp_path) -> None:
    x = np.random.default_rng(2).standard_normal((1, 32)).astype(np.float32)
    small = edit.convert(model, "int8", all_layers=True)
    (body,) = (body for _, _, body in small.subgraphs())
    assert [
        n.op.attributes["shape"]
        for n in body.nodes
        if n.type == "Const" and n.outputs[0].type.element is irload.elements.u8
    ]
    np.testing.assert_allclose(run(small, x), run(model, x), atol=0.05)
    np.testing.assert_allclose(by_runtime(small, x, tmp_path), run(small, x), atol=0.05)

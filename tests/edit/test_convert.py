"""convert: the form of decompression that OpenVINO runs on compressed weights, and the error of each mode."""

from __future__ import annotations

from collections import Counter

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

import irload
from irload import edit
from irload.edit.quantization import MODES, quantized
from tests.harness.runtime import core

RNG = np.random.default_rng(0)
LOOK_UP = RNG.standard_normal((50, 256)).astype(np.float32)
FIRST, LAST = (RNG.standard_normal((64, n)).astype(np.float32) * 0.05 for n in (256, 64))
TOKENS = np.array([[3, 7, 49]])


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> irload.Model:
    """An embedding, two matrix products and a convolution."""
    ids = op.parameter([-1, -1], np.int64, name="ids")
    rows = op.gather(op.constant(LOOK_UP), ids, op.constant(np.int64(0)))
    hidden = op.relu(op.matmul(rows, op.constant(FIRST), False, True))
    filters = op.constant(RNG.standard_normal((4, 1, 3, 3)).astype(np.float32) * 0.1)
    conv = op.convolution(op.unsqueeze(hidden, np.int64(1)), filters, [1, 1], [1, 1], [1, 1], [1, 1])
    out = op.matmul(op.reduce_mean(conv, np.int64(1)), op.constant(LAST), False, True)
    path = tmp_path_factory.mktemp("convert") / "m.xml"
    ov.serialize(ov.Model([out], [ids]), path)
    return irload.read_model(path)


def stored(model: irload.Model) -> dict[str, int]:
    """The number of weights of each element type; the last axis of scales and zero points is 1."""
    constants = [n.op.attributes for n in model.nodes if n.type == "Const"]
    return Counter(c["element_type"].name for c in constants if c["shape"].size.lo >= 32 and c["shape"][-1].size > 1)


def run(model: irload.Model) -> np.ndarray:
    return irload.compile_model(model)(TOKENS)[0]


@pytest.mark.parametrize(
    ("format", "settings", "types", "error"),
    [
        ("fp16", {}, {"f16": 4}, 1e-3),
        ("bf16", {}, {"bf16": 4}, 1e-2),
        ("int8", {}, {"u8": 4}, 2e-2),
        ("int8_sym", {}, {"i8": 4}, 2e-2),
        ("int4", {}, {"i4": 1, "u8": 3}, 0.2),
        ("int4", {"all_layers": True, "group_size": 32}, {"i4": 3, "u8": 1}, 0.3),
        ("int4_asym", {"group_size": None}, {"u4": 1, "u8": 3}, 0.3),
    ],
)
def test_formats(format, settings, types, error, model, tmp_path) -> None:
    small = edit.convert(model, format, **settings)
    assert stored(small) == types
    expected, actual = run(model), run(small)
    assert np.abs(actual - expected).max() <= error * np.abs(expected).max()
    irload.save_model(small, tmp_path / "small.xml")
    assert not [f for f in irload.check(tmp_path / "small.xml").findings if f.severity != "note"]
    exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    theirs = core().compile_model(str(tmp_path / "small.xml"), "CPU", exact)(TOKENS)[0]
    np.testing.assert_allclose(theirs, actual, atol=1e-3 * np.abs(actual).max())


EXECUTED = {"int8": "u8", "int8_sym": "i8", "int4": "i4", "int4_asym": "u4"}


@pytest.mark.parametrize(("format", "element"), EXECUTED.items())
def test_the_runtime_executes_weights_compressed(format, element, model, tmp_path) -> None:
    irload.save_model(edit.convert(model, format, all_layers=True, group_size=64), tmp_path / "small.xml")
    graph = core().compile_model(str(tmp_path / "small.xml"), "CPU").get_runtime_model()
    ports = {"FullyConnected": 1, "Gather": 0}
    kinds = Counter[tuple[str, str]]()
    for node in graph.get_ops():
        info = node.get_rt_info()
        kind = info["layerType"].astype(str) if "layerType" in info else ""
        if kind in ports:
            kinds[kind, node.input(ports[kind]).get_element_type().get_type_name()] += 1
    assert kinds == {("FullyConnected", element): 2, ("Gather", element): 1}


def test_the_pattern_and_its_names(model) -> None:
    small = edit.convert(model, "int4", group_size=64)
    product = next(n for n in small.nodes if n.type == "MatMul")
    chain, output = [], product.inputs[1]
    while output.node.type != "Const":
        chain.append((output.node.type, output.type.element.name))
        output = output.node.inputs[0]
    assert chain == [("Convert", "f32"), ("Reshape", "f16"), ("Multiply", "f16"), ("Convert", "f16")]
    assert str(output.type) == "i4[64,4,64]"
    assert product.inputs[1].node.rt_info == [{"name": "decompression", "version": "0"}]


@pytest.mark.parametrize("mode", MODES)
def test_codes_are_the_nearest_ones(mode) -> None:
    weights = RNG.standard_normal((5, 3, 40)).astype(np.float32)
    weights[0] = 0
    weights[1] = np.abs(weights[1])
    codes = quantized(weights, MODES[mode], [2])
    low, high = MODES[mode].levels
    zero = 0 if codes.zero_point is None else codes.zero_point.astype(np.float32)
    scale = codes.scale.astype(np.float32)
    assert codes.codes.min() >= low
    assert codes.codes.max() <= high
    restored = (codes.codes - zero) * scale
    every = (np.arange(low, high + 1, dtype=np.float32)[:, None, None, None] - zero) * scale
    nearest = np.abs(every - weights).min(0)
    np.testing.assert_allclose(np.abs(restored - weights), nearest, atol=1e-6)
    steps = high - low
    extent = weights.max(2, keepdims=True).clip(0) - weights.min(2, keepdims=True).clip(max=0)
    if codes.zero_point is not None:
        np.testing.assert_allclose(scale[1:], extent[1:] / steps, rtol=1e-3)


def test_layers_that_stay(tmp_path) -> None:
    x = op.parameter([4, 6], np.float32, name="x")
    means = op.reduce_mean(x, np.int64([0]), True)
    frequencies = op.matmul(op.constant(np.float32([[1.0], [0.1], [0.01]])), means, False, False)
    codes = op.convert(op.constant(np.ones((6, 16), np.int8)), "f32")
    product = op.matmul(x, op.multiply(codes, op.constant(np.float32(0.5))), False, False)
    ov.serialize(ov.Model([frequencies, product], [x]), tmp_path / "m.xml")
    model = irload.read_model(tmp_path / "m.xml")
    before = [n.type for n in model.nodes]
    assert sorted(n.type for n in edit.convert(model, "int8").nodes) == sorted(before)
    assert sorted(n.type for n in edit.convert(model, "bf16").nodes) == sorted(before)


def test_weights_of_f16_files(model, tmp_path) -> None:
    irload.save_model(model, tmp_path / "half.xml", compress_to_fp16=True)
    half = irload.read_model(tmp_path / "half.xml")
    small = edit.convert(half, "int8")
    assert stored(small) == {"u8": 4}
    expected = run(model)
    assert np.abs(run(small) - expected).max() <= 2e-2 * np.abs(expected).max()


def test_bodies_are_rounded_too(tmp_path) -> None:
    inner = op.parameter([2], np.float32)
    branches = [ov.Model([op.add(inner, np.float32([0.5, 2.0]))], [inner])]
    other = op.parameter([2], np.float32)
    branches.append(ov.Model([op.relu(other)], [other]))
    x, choice = op.parameter([2], np.float32, name="x"), op.parameter([], bool, name="c")
    node = op.if_op(choice)
    node.set_then_body(branches[0])
    node.set_else_body(branches[1])
    node.set_input(x.output(0), inner, other)
    node.set_output(branches[0].get_results()[0], branches[1].get_results()[0])
    ov.serialize(ov.Model([node], [x, choice]), tmp_path / "m.xml")
    small = edit.convert(irload.read_model(tmp_path / "m.xml"), "bf16")
    assert any(
        n.op.attributes["element_type"].name == "bf16" for g in small.walk() for n in g.nodes if n.type == "Const"
    )
    result = irload.compile_model(small)({small.inputs[0]: np.float32([1, 2]), small.inputs[1]: np.array(True)})
    assert result[0].tolist() == [1.5, 4.0]


def test_refused_formats(digits) -> None:
    with pytest.raises(irload.InputInvalid, match=r"format must be one of fp16, bf16, int8, .*, found 'int3'"):
        edit.convert(digits, "int3")
    with pytest.raises(irload.InputInvalid, match="group_size must be positive"):
        edit.convert(digits, "int4", group_size=0)

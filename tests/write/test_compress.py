"""compress_to_fp16: the constants that the real runtime's save_model would halve, named as it names them."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

import irload
from irload.core import element as et
from irload.write.compress import halves
from tests.harness.runtime import core
from tests.resave import halved


def both(model: ov.Model, tmp_path) -> tuple[set[str], set[str]]:
    """The names of the halved constants: by irload, by OpenVINO."""
    ov.serialize(model, tmp_path / "plain.xml")
    ov.save_model(core().read_model(tmp_path / "plain.xml"), tmp_path / "theirs.xml")
    irload.save_model(irload.read_model(tmp_path / "plain.xml"), tmp_path / "ours.xml", compress_to_fp16=True)
    return halved(tmp_path / "ours.xml"), halved(tmp_path / "theirs.xml")


def sum_with(values, dtype=np.float32) -> ov.Model:
    array = np.asarray(values, dtype)
    x = op.parameter(list(array.shape), dtype)
    added = op.constant(array)
    added.set_friendly_name("c")
    return ov.Model([op.add(x, added)], [x])


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        (0.5, True),
        (0.2, False),
        (1e-6, False),
        (65503.0, True),
        (2049.0, False),
        ([0.2, 0.2], True),
        ([1e-6, 1e-6], False),
        ([1e-6, 1.0], True),
        ([1e-6] * 3 + [1.0], False),
        ([7e4] * 74 + [1.0] * 26, True),
        ([7e4] * 75 + [1.0] * 25, False),
        ([1e-9] * 2 + [0.0] * 2, True),
        ([-1e-9] * 3 + [0.0], False),
        ([np.nan] * 3 + [1.0], False),
        ([np.inf, 1.0], True),
        ([54243.5] * 2, False),
        ([65504.5] * 3 + [1.0], False),
    ],
)
def test_which_values_fit(values, fits, tmp_path):
    expected = {"c"} if fits else set()
    assert both(sum_with(values), tmp_path) == (expected, expected)


def test_double_precision_keeps_its_type(tmp_path):
    assert both(sum_with([0.5, 2.0], np.float64), tmp_path) == ({"c"}, {"c"})
    assert irload.read_model(tmp_path / "ours.xml").outputs[0].element_type is et.f64


def test_the_file_equals_the_runtimes(tmp_path):
    both(sum_with([0.5, 2.0]), tmp_path)
    for file in ("ours.xml", "theirs.xml"):
        model = irload.read_model(tmp_path / file)
        convert = next(n for n in model.nodes if n.type == "Convert")
        const = convert.inputs[0].node
        assert (const.name, convert.name) == ("c_compressed", "c")
        assert {"name": "decompression", "version": "0"} in convert.rt_info
        assert const.op.attributes["size"] == 4


def test_extremes_are_clamped():
    x = np.array([1e6, -1e6, np.inf, 1e-9, 1, 2, 3, 4, 5, 6, 7, 8], np.float32)
    narrow = halves(x, et.f32)
    assert narrow is not None
    assert narrow[:4].tolist() == [65504, -65504, 65504, 0]


def test_operands_of_shapes_are_not_compressed(tmp_path):
    x = op.parameter([2, 6], np.float32)
    scale, offset = (op.constant(np.array([2.0, 0.5], np.float32)) for _ in range(2))
    scale.set_friendly_name("shaping")
    offset.set_friendly_name("before_shapeof")
    size = op.convert(op.shape_of(op.reshape(op.add(op.reshape(x, [6, 2], False), offset), [3, 4], False)), "f32")
    shape = op.convert(op.multiply(size, scale), "i64")
    model = ov.Model([op.reshape(x, shape, False)], [x])
    assert both(model, tmp_path) == ({"before_shapeof"}, {"before_shapeof"})


def test_bodies_are_compressed_too(tmp_path):
    inner = op.parameter([2], np.float32)
    added = op.constant(np.array([0.5, 2.0], np.float32))
    added.set_friendly_name("inside")
    branches = [ov.Model([op.add(inner, added)], [inner]), ov.Model([op.relu(inner)], [inner])]
    x, choice = op.parameter([2], np.float32), op.parameter([], bool)
    node = op.if_op(choice)
    node.set_then_body(branches[0])
    other = op.parameter([2], np.float32)
    node.set_else_body(ov.Model([op.relu(other)], [other]))
    node.set_input(x.output(0), inner, other)
    node.set_output(node.get_function(0).get_results()[0], node.get_function(1).get_results()[0])
    assert both(ov.Model([node], [x, choice]), tmp_path) == ({"inside"}, {"inside"})


@pytest.mark.parametrize("zero_point", [True, False])
def test_quantized_models_keep_their_floats(zero_point, tmp_path):
    x = op.parameter([2], np.float32)
    weights = op.convert(op.constant(np.array([1, 2], np.int8)), "f32")
    if zero_point:
        weights = op.subtract(weights, op.convert(op.constant(np.array([1, 2], np.int8)), "f32"))
    scaled = op.multiply(weights, op.constant(np.array([0.5, 2.0], np.float32)))
    assert both(ov.Model([op.add(x, scaled)], [x]), tmp_path) == (set(), set())


def test_fake_quantize_keeps_all_floats(tmp_path):
    x = op.parameter([2], np.float32)
    low, high = op.constant(np.float32([0, 0])), op.constant(np.float32([0.5, 2]))
    assert both(ov.Model([op.fake_quantize(x, low, high, low, high, 256)], [x]), tmp_path) == (set(), set())

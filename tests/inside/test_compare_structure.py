"""compare of models with layers renamed, reordered, replaced or inserted, or with other shapes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lxml import etree

import irload
from irload.comparison.folded import clear_folded
from irload.comparison.layer_error import Comparison, LayerError
from irload.comparison.matching import match
from irload.comparison.measures import measure
from models.ir import Graph, Ref, save
from tests.disguise import disguise
from tests.inside.nets import binary, model, unary, with_constant
from tests.inside.test_compare import IMAGE, ROWS, cnn, half, inner, inputs_of, rows
from tests.planted_faults import compare_untouched, run

MODELS = sorted((Path(__file__).parents[2] / "models").glob("*/model.xml"))


def disguised(source: irload.Model, folder: Path, replaced: dict[str, str] | None = None) -> irload.Model:
    """A saved copy under other names, in another order, with layers of some types replaced."""
    irload.save_model(source, folder / "copy.xml")
    tree = etree.parse(folder / "copy.xml")
    for layer in tree.iter("layer"):
        layer.set("type", (replaced or {}).get(layer.get("type"), layer.get("type")))
    disguise(tree.getroot(), np.random.default_rng(3))
    tree.write(folder / "copy.xml")
    return irload.read_model(folder / "copy.xml")


@pytest.mark.parametrize("make", [cnn, rows, half, inner])
def test_a_disguised_copy_is_the_same(make, tmp_path):
    a = make()
    b = disguised(a, tmp_path)
    comparison = irload.compare(a, b, inputs_of(make))
    assert comparison.passed, str(comparison)
    assert comparison.unmatched == 0
    assert [e.passed for e in comparison.outputs] == [True]
    assert irload.diff(a, b, ignore=["names"]).same


def test_an_output_beyond_tolerance_fails_with_any_names(tmp_path):
    a = rows()
    comparison = irload.compare(a, disguised(a, tmp_path, {"Abs": "ReLU"}), ROWS)
    assert not comparison.passed
    assert not comparison.outputs[0].passed
    assert (comparison.first.name, comparison.first.operation) == ("abs", "Abs")


def test_inputs_of_a_reordered_model_are_matched(tmp_path):
    g = Graph()
    x, y = g.parameter("x", "f32", [2, 3]), g.parameter("y", "f32", [2, 3])
    a = model(g, binary(g, "Subtract", unary(g, "Exp", x, "exp"), unary(g, "Tanh", y, "tanh"), "end"))
    b = disguised(a, tmp_path)
    assert [p.node.id for p in b.inputs] != [0, 1]
    pairs = {v.name: k for k, v in match(a, b).items()}
    assert {pairs[n].type for n in ("exp", "tanh")} == {"Exp", "Tanh"}
    assert irload.compare(a, b, [np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)]).passed


@pytest.mark.parametrize("swap", [False, True])
def test_misleading_names_are_not_matched(swap):
    def build(first: str, second: str) -> irload.Model:
        g = Graph()
        x = unary(g, "Tanh", g.parameter("x", "f32", [3]), first)
        return model(g, with_constant(g, "Add", unary(g, "Sin", x, "sin"), 1.0, second))

    names = ("a", "b")
    assert irload.compare(build(*names), build(*(names[::-1] if swap else names)), np.ones(3, np.float32)).passed


def test_a_small_change_of_a_constant_is_named_before_its_reader():
    def build(scale: float) -> irload.Model:
        g = Graph()
        x = with_constant(g, "Multiply", g.parameter("x", "f16", [8]), scale, "scale")
        return model(g, unary(g, "Tanh", x, "end"))

    comparison = irload.compare(build(1.5 * 1.004), build(1.5), np.linspace(0, 1, 8, dtype=np.float16))
    assert (comparison.first.name, comparison.first.operation) == ("scale_c", "Const")
    assert comparison.first.problem.startswith("1 of 1 values differ")


def test_weights_are_compared_after_decompression(tmp_path):
    def build(dtype: str, scale: float = 0.25) -> irload.Model:
        g = Graph()
        x, data = g.parameter("x", "f32", [2, 3]), np.array([[-8, 4, 2]], np.int32)
        weights = g.constant((data * 0.25).astype(dtype) if dtype != "i1" else data, "weights")
        if dtype != "f4":
            convert = {"destination_type": "f32"}
            weights = g.layer("Convert", [weights], [("f32", [1, 3])], name="wide", attributes=convert)[0]
        if dtype == "i1":
            weights = with_constant(g, "Multiply", weights, scale, "scaled")
        return model(g, binary(g, "Multiply", x, weights, "end"))

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert irload.compare(build("f2"), build("i1"), x).passed
    assert irload.compare(build("i1"), build("f4"), x).passed
    comparison = irload.compare(build("i1", 0.3), build("f2"), x)
    assert (comparison.first.name, comparison.first.problem) == ("weights", "decompressed from i32 and f16")


def test_weights_that_were_rounded_are_one_note(tmp_path):
    irload.save_model(cnn(), tmp_path / "half.xml", compress_to_fp16=True)
    comparison = irload.compare(cnn(), tmp_path / "half.xml", IMAGE)
    assert comparison.passed, str(comparison)
    assert len(comparison.notes) == 1
    assert comparison.notes[0].endswith("constants differ by rounding to f16")


def quantized(levels: int, last: float = 8.0) -> irload.Model:
    g = Graph()
    x = g.parameter("x", "f16", [1, 2, 64])
    high = np.array([1.0, last], np.float16).reshape(1, 2, 1)
    ends = [g.constant(v.astype(np.float16)) for v in (-high, high, -high, high)]
    attributes = {"levels": levels, "auto_broadcast": "numpy"}
    return model(g, g.layer("FakeQuantize", [x, *ends], [("f16", x.dims)], name="fq", attributes=attributes)[0])


def test_levels_that_differ_are_named():
    x = np.random.default_rng(0).uniform(-1, 1, (1, 2, 64)).astype(np.float16)
    for pair in ((256, 15), (15, 256)):
        assert irload.compare(*map(quantized, pair), x).first.name == "fq"
    assert irload.compare("fast", quantized(256), x).passed


def test_one_level_is_allowed_at_the_edge_of_two_of_the_same_channel(tmp_path):
    net = quantized(16)
    x = np.full((1, 2, 64), 0.1, np.float16)
    clean = irload.compile_model(net, optimize=False)(x)[0]

    def passes(channel: int, step: float) -> bool:
        moved = clean.copy()
        moved[0, channel, 0] += np.float16(step)
        np.savez(tmp_path / "d.npz", fq=moved)
        return irload.compare(tmp_path / "d.npz", net, x).passed

    assert not passes(1, 16 / 15)  # 0.1 is far from an edge
    x[0, :, 0] = [0.0, 0.0]  # the edge of two levels
    clean = irload.compile_model(net, optimize=False)(x)[0]
    sign = -np.sign(clean[0, :, 0].astype(np.float32))
    assert passes(0, sign[0] * 2 / 15)
    assert not passes(0, sign[0] * 16 / 15)  # the size of a level in the other channel
    assert passes(1, sign[1] * 16 / 15)


def test_f32_for_an_input_of_f16_is_rounded_on_both_sides(tmp_path):
    g = Graph()
    x = g.parameter("x", "f16", [4096])

    def fake_quantize(of: Ref, high: float, name: str) -> Ref:
        ends = [g.constant(np.float16(v)) for v in (0, high, 0, high)]
        attributes = {"levels": 256, "auto_broadcast": "numpy"}
        return g.layer("FakeQuantize", [of, *ends], [("f16", of.dims)], name=name, attributes=attributes)[0]

    bytes_ = fake_quantize(x, 254.5, "bytes")  # fused into the next FakeQuantize, so the plan has no such levels
    scaled = with_constant(g, "Multiply", bytes_, 1 / 255, "scaled")
    g.result(fake_quantize(scaled, 1.0, "levels"))
    save(g, tmp_path, "f16", version=10)  # in IR v10, inputs of f16 models are f32
    net = irload.read_model(tmp_path / "model.xml")
    around = np.linspace(0.4985, 0.4995, 4096, dtype=np.float32)  # edge of two levels; f16 moves some values across
    assert irload.compare("fast", net, around).passed


def selecting(threshold: float) -> irload.Model:
    """As many columns as values beyond a threshold, then a layer that depends only on their number."""
    g = Graph()
    x = g.parameter("x", "f32", [6])
    shifted = with_constant(g, "Add", x, threshold, "shifted")
    indices = g.layer(
        "NonZero", [unary(g, "ReLU", shifted, "relu")], [("i64", [1, -1])], version="opset3", name="where"
    )[0]
    width = g.layer("Convert", [indices], [("f32", [1, -1])], name="width", attributes={"destination_type": "f32"})[0]
    return model(g, unary(g, "Tanh", width, "tanh"))


def test_shapes_that_differ_are_a_finding_and_heirs_are_not_named():
    x = np.arange(-3, 3, dtype=np.float32)
    comparison = irload.compare(selecting(1.5), selecting(0.5), x)
    assert comparison.first.name == "shifted_c"
    assert [e.name for e in comparison.layers if not e.passed] == ["shifted_c", "shifted"]
    assert {e.name: e.total for e in comparison.layers}["tanh"] is None  # its length differs from the other side's
    assert not comparison.passed


def test_a_layer_of_another_shape_is_named_without_its_consumers():
    def build(axis: int) -> irload.Model:
        g = Graph()
        x = g.parameter("x", "f32", [4, 6])
        top = g.layer(
            "ReduceMax", [x, g.constant([axis])], [("f32", [-1])], name="top", attributes={"keep_dims": "false"}
        )
        return model(g, unary(g, "Tanh", top[0], "end"))

    comparison = irload.compare(build(0), build(1), ROWS)
    names = [e.name for e in comparison.layers if not e.passed]
    assert names[-1] == "top"
    assert "end" not in names
    assert {e.name: e.inherited for e in comparison.layers}["end"]


def error(name: str, own: float, total: float) -> LayerError:
    one = np.ones(4, np.float32)
    measures = [measure(one + e, one, 1e-4) for e in (np.float32(own), np.float32(total))]
    return LayerError(name, "Any", 0, "f32", (4,), 1e-4, measures[0], measures[1])


def test_layers_folded_into_the_next_are_cleared_with_it():
    g = Graph()
    x = with_constant(g, "Multiply", g.parameter("x", "f32", [4]), 2.0, "conv")
    net = model(g, with_constant(g, "Add", x, 1.0, "norm"))
    nodes = {n.name: n for n in net.nodes}
    folded = Comparison("a", "b", [error("conv", 0.5, 0.5), error("norm", 0.5, 0)])
    clear_folded(net, folded, nodes)
    assert folded.passed
    wrong = Comparison("a", "b", [error("conv", 0.5, 0.5), error("norm", 0, 0.5)])
    clear_folded(net, wrong, nodes)
    assert wrong.first.name == "conv"
    masked = Comparison("a", "b", [error("conv", 0.5, 0.5), error("norm", 0, 0)])
    clear_folded(net, masked, nodes)
    assert masked.first.name == "conv"


def test_planted_faults_are_named_first():
    tally = run(MODELS, 24, 1)
    assert tally.planted.total() == 24
    assert (tally.passed_wrongly, tally.crashes) == (0, 0), tally.lines
    assert tally.named >= 23, tally.lines


def test_untouched_pairs_pass():
    tally = compare_untouched(MODELS, ("fast", "saved", "disguised"))
    assert tally.planted.total() == 3 * len(MODELS)
    assert tally.named == tally.planted.total(), tally.lines

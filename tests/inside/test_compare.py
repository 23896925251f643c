"""compare names the layer with the planted fault, and reports nothing for equal pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.comparison.compare import TOLERANCES
from irload.comparison.sources import openvino_precision
from models.ir import Graph, Ref
from tests.inside.nets import looped, model, unary, with_constant
from tests.traced.states import Decoder

IMAGE = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
ROWS = np.random.default_rng(2).standard_normal((4, 6)).astype(np.float32)
NUMPY = {"auto_broadcast": "numpy"}


class Net:
    """A graph into which single faults can be planted: `faults` by name."""

    def __init__(self, faults: dict[str, Any], prefix: str = "") -> None:
        self.g, self.faults, self.rng, self.prefix = Graph(), faults, np.random.default_rng(0), prefix

    def weights(self, name: str, *shape: int) -> Ref:
        value = self.rng.standard_normal(shape).astype(np.float32)
        change = self.faults.get(name)
        return self.g.constant(value if change is None else change(value).astype(np.float32), self.prefix + name)

    def scalar(self, name: str, value: float) -> Ref:
        return self.g.constant(np.float32(self.faults.get(name, value)), self.prefix + name)

    def op(self, type: str, name: str, *inputs: Ref, dims=(), version: str = "opset1", **attributes: Any) -> Ref:
        change = self.faults.get(name, {})
        if change == "swapped":
            inputs, change = inputs[::-1], {}
        merged = {**attributes, **change}
        layer = self.g.layer(
            merged.pop("type", type),
            inputs,
            [("f32", dims)],
            version=version,
            name=self.prefix + name,
            attributes=merged,
        )
        return layer[0]


def cnn(prefix: str = "", **faults: Any) -> irload.Model:
    net = Net(faults, prefix)
    x = net.g.parameter("x", "f32", IMAGE.shape)
    pairs = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    c = net.op("Convolution", "conv1", x, net.weights("w1", 4, 3, 3, 3), **pairs)
    c = net.op("Add", "bias1", c, net.weights("b1", 1, 4, 1, 1), **NUMPY)
    stats = [net.weights(n, 4) for n in ("gamma", "beta", "mean")]
    variance = net.g.constant(np.full(4, 1e-3, np.float32), f"{prefix}variance")
    c = net.op("BatchNormInference", "norm", c, *stats, variance, version="opset5", epsilon=1e-5)
    c = net.op("Elu", "elu", c, alpha=1.0)
    c = net.op("Convolution", "conv2", c, net.weights("w2", 4, 4, 3, 3), **pairs)
    c = net.op("LRN", "lrn", c, net.g.constant([1]), alpha=0.1, beta=0.75, bias=1.0, size=3)
    both = net.op("Subtract", "difference", c, net.op("Tanh", "tanh", c), **NUMPY)
    pool = {"strides": "2,2", "kernel": "3,3", "pads_begin": "1,1", "pads_end": "1,1", "exclude-pad": "true"}
    c = net.op("AvgPool", "pool", both, **pool, rounding_type="floor", auto_pad="explicit")
    flat = net.op("Reshape", "flat", c, net.g.constant([1, 64]), special_zero="false")
    m = net.op("MatMul", "dense", flat, net.weights("w3", 64, 5), transpose_a="false", transpose_b="false")
    m = net.op("Multiply", "scaled", m, net.scalar("scale", 0.1), **NUMPY)
    return model(net.g, net.op("SoftMax", "softmax", m, axis=1))


def rows(**faults: Any) -> irload.Model:
    net = Net(faults)
    x = net.g.parameter("x", "f32", ROWS.shape)
    mvn = {"eps": 1e-3, "eps_mode": "inside_sqrt", "normalize_variance": "true"}
    n = net.op("MVN", "mvn", x, net.g.constant([1]), version="opset6", **mvn)
    q = net.op("MatMul", "q", n, net.weights("wq", 6, 6), transpose_a="false", transpose_b="false")
    k = net.op("MatMul", "k", n, net.weights("wk", 6, 6), transpose_a="false", transpose_b="false")
    s = net.op("MatMul", "scores", q, k, transpose_a="false", transpose_b="true")
    s = net.op("Divide", "divided", s, net.scalar("root", 2.4), **NUMPY)
    s = net.op("SoftMax", "attention", s, axis=1)
    v = net.op("MatMul", "mixed", s, n, transpose_a="false", transpose_b="false")
    v = net.op("Gelu", "gelu", v, version="opset7", approximation_mode="ERF")
    h = net.op("Power", "power", net.op("Abs", "abs", v), net.scalar("exponent", 2.0), **NUMPY)
    c = net.op("Clamp", "clamp", h, min=0.0, max=6.0)
    return model(net.g, net.op("Subtract", "out", c, n, **NUMPY))


def half(**faults: Any) -> irload.Model:
    g = Graph()
    x = g.parameter("x", "f16", [4, 6])
    x = with_constant(g, "Multiply", x, faults.get("big", 10), "big")
    x = with_constant(g, "Multiply", x, faults.get("bigger", 20), "bigger")
    return model(g, unary(g, "Tanh", x, "end"))


def inner(**faults: Any) -> irload.Model:
    def build(g: Graph, x: Ref) -> Ref:
        shifted = with_constant(g, faults.get("type", "Add"), x, 0.5, "shifted")
        return unary(g, "Tanh", with_constant(g, "Multiply", shifted, faults.get("slope", 1.1), "slope"), "tanh")

    return looped(build, "f32", ROWS.shape)


def one_wrong(w):
    w = w.copy()
    w.reshape(-1)[3] += 0.05
    return w


PLANTED: list[tuple[Any, dict[str, Any], str]] = [
    (cnn, {"w1": one_wrong}, "w1"),
    (cnn, {"b1": lambda b: b * 1.001}, "b1"),
    (cnn, {"gamma": lambda v: v[::-1]}, "gamma"),
    (cnn, {"b1": lambda b: b.reshape(1, 4, 1, 1)[:, :1].repeat(4, 1)}, "b1"),
    (cnn, {"norm": {"epsilon": 1e-4}}, "norm"),
    (cnn, {"elu": {"alpha": 1.05}}, "elu"),
    (cnn, {"conv2": {"pads_begin": "0,0", "pads_end": "2,2"}}, "conv2"),
    (cnn, {"lrn": {"alpha": 0.11}}, "lrn"),
    (cnn, {"difference": "swapped"}, "difference"),
    (cnn, {"pool": {"exclude-pad": "false"}}, "pool"),
    (cnn, {"scale": 0.1001}, "scale"),
    (rows, {"mvn": {"eps": 1e-2}}, "mvn"),
    (rows, {"scores": "swapped"}, "scores"),
    (rows, {"attention": {"axis": 0}}, "attention"),
    (rows, {"gelu": {"approximation_mode": "TANH"}}, "gelu"),
    (rows, {"clamp": {"max": 0.5}}, "clamp"),
    (rows, {"out": "swapped"}, "out"),
    (half, {"bigger": 60000}, "bigger_c"),
    (inner, {"slope": 1.11}, "loop/body/slope_c"),
    (inner, {"type": "Maximum"}, "loop/body[0]/shifted"),
]


def inputs_of(make) -> np.ndarray:
    return IMAGE if make is cnn else ROWS.astype(np.float16) if make is half else ROWS


@pytest.mark.parametrize(("make", "fault", "name"), PLANTED)
def test_the_planted_layer_is_named_first(make, fault, name):
    comparison = irload.compare(make(**fault), make(), inputs_of(make))
    assert not comparison.passed
    assert comparison.first.name == name


@pytest.mark.parametrize("make", [cnn, rows, half, inner])
@pytest.mark.parametrize("sides", [("plain", None), (None, "plain"), ("fast", None), (None, "fast"), (None, None)])
def test_pairs_that_are_alike_pass(make, sides):
    a, b = (make() if side is None else side for side in sides)
    comparison = irload.compare(a, b, inputs_of(make))
    assert comparison.passed, str(comparison)
    assert comparison.layers
    assert comparison.first is None


def test_inherited_errors_are_distinguished_from_new_ones():
    comparison = irload.compare(cnn(conv2={"pads_begin": "0,0", "pads_end": "2,2"}), cnn(), IMAGE)
    assert [e.name for e in comparison.layers if not e.passed] == ["conv2"]
    after = {e.name: e for e in comparison.layers}["softmax"]
    assert after.own.needed < 1e-6
    assert not after.total.passed


def test_renamed_layers_are_matched_by_position():
    comparison = irload.compare(cnn(elu={"alpha": 1.05}), cnn(prefix="exported/"), IMAGE)
    assert comparison.first.name == "elu"
    assert comparison.unmatched == 0
    assert irload.compare(cnn(), cnn(prefix="exported/"), IMAGE).passed


def test_a_layer_without_partner_is_named_with_its_neighbours():
    g = Graph()
    short = model(g, unary(g, "Tanh", g.parameter("x", "f32", [2]), "end"))
    g = Graph()
    long = model(g, unary(g, "Tanh", unary(g, "Abs", g.parameter("x", "f32", [2]), "more"), "end"))
    comparison = irload.compare(long, short, -np.ones(2, np.float32))
    assert (comparison.first.name, comparison.first.problem) == ("more", "between x and end, without partner in B")
    assert comparison.unmatched == 1
    turned = irload.compare(short, long, -np.ones(2, np.float32))
    assert (turned.first.name, turned.first.problem) == ("more", "between x and end, without partner in A")


@pytest.mark.parametrize("kind", ["folder", "npz"])
def test_dumps(tmp_path, kind):
    compiled = irload.compile_model(inner())
    folder = tmp_path / "d"
    entries = irload.dump_intermediates(compiled, ROWS, folder)
    target = folder
    if kind == "npz":
        target = tmp_path / "d.npz"
        np.savez(target, **{e.name: np.load(folder / e.file) for e in entries if "/" not in e.name})
    assert irload.compare(inner(), target, ROWS).passed
    comparison = irload.compare(target, inner(slope=1.2), ROWS)
    assert comparison.first.name == ("loop" if kind == "npz" else "loop/body[0]/slope")


def test_a_wrong_intermediate_of_a_dump_fails(tmp_path):
    """The other layers of the dump agree with the model, so no later layer explains the difference."""
    entries = irload.dump_intermediates(irload.compile_model(cnn()), IMAGE, tmp_path / "d")
    (file,) = (tmp_path / "d" / e.file for e in entries if e.name == "conv1")
    np.save(file, np.load(file) + 1)
    comparison = irload.compare(cnn(), tmp_path / "d", IMAGE)
    assert not comparison.passed
    assert comparison.first.name == "conv1"


def test_tolerances_are_by_type_or_pattern():
    pair = (cnn(lrn={"alpha": 0.11}), cnn(), IMAGE)
    assert irload.compare(*pair, tolerances={"f32": 0.5}).passed
    assert irload.compare(*pair, tolerances={"lr*": 0.5, "softmax": 0.5}).passed
    assert not irload.compare(*pair, tolerances={"conv*": 0.5}).passed
    with pytest.raises(irload.InputInvalid, match="'f99' is neither an element type nor a pattern that matches"):
        irload.compare(*pair, tolerances={"f99": 1})
    assert [e.name for e in irload.compare(*pair, layers="conv?").layers] == ["conv1", "conv2"]


def test_measures():
    from irload.comparison.measures import measure

    b = np.array([3, 4, 0, 0], np.float32)
    error = measure(np.array([3, 4.5, 0, 0], np.float32), b, 0.01)
    assert (error.max_abs, error.mean_abs, error.max_rel, error.beyond) == (0.5, 0.125, 0.125, 1)
    assert error.needed == pytest.approx(0.5 / (4 + 2.5))
    assert error.psnr == pytest.approx(20 * np.log10(4 / 0.25))
    assert error.cosine == pytest.approx((9 + 18) / (np.sqrt(9 + 20.25) * 5))
    assert error.against_std == pytest.approx(0.25 / b.std())
    nan = np.array([np.nan, np.inf], np.float32)
    assert measure(nan, nan.copy(), 0).passed
    assert measure(nan, np.array([np.nan, -np.inf], np.float32), 1).beyond == 1


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("floor", [0.0, 1e-3])
def test_measures_over_chunks_equal_the_whole(dtype, floor):
    from irload.comparison.measures import CHUNK, measure

    rng = np.random.default_rng(0)
    b = np.maximum(rng.standard_normal(3 * CHUNK + 7), 0).astype(dtype)
    a = (b + 1e-2 * rng.standard_normal(b.size) * (b > 0)).astype(dtype)
    measured = measure(a, b, 5e-3, floor)
    x, y = a.astype(np.float64), b.astype(np.float64)
    error = np.abs(x - y)
    share = np.maximum(error - floor, 0) / (y + np.sqrt((y * y).mean()))
    relative = error[y > 0] / y[y > 0]
    assert measured.beyond == (share > 5e-3).sum() > 0
    expected = error.max(), error.mean(), relative.max(), relative.sum() / b.size, share.max()
    assert (measured.max_abs, measured.mean_abs, measured.max_rel, measured.mean_rel, measured.needed) == pytest.approx(
        expected
    )
    assert measured.against_std == pytest.approx(np.sqrt((error**2).mean()) / y.std())
    assert measured.cosine == pytest.approx(x @ y / np.sqrt(x @ x * (y @ y)), rel=1e-12)


def test_measures_of_hidden_differences():
    from irload.comparison.measures import measure

    large = np.array([2**60, 5], np.int64)
    assert measure(large + np.array([1, 0]), large, 0).beyond == 1
    assert measure(np.array([1e300, 1]), np.array([-1e300, 1]), 1e-4).max_abs == 2e300  # the squares overflow
    zero = np.zeros(3, np.float32)
    error = measure(zero + np.float32(1e-3), zero, 1e-4)
    assert (error.beyond, error.needed, error.max_rel, error.mean_rel) == (3, np.inf, np.inf, 0)
    assert measure(-zero, zero, 0).passed


def test_layers_that_both_sides_share_run_once(monkeypatch):
    """Layers before the edit compute the same arrays in both models, so each runs only once per model."""
    from irload.plan import interpreter

    counts: dict[str, int] = {}
    evaluate = interpreter.evaluate

    def spy(op, *rest):
        counts[type(op).__name__] = counts.get(type(op).__name__, 0) + 1
        return evaluate(op, *rest)

    monkeypatch.setattr(interpreter, "evaluate", spy)
    comparison = irload.compare(cnn(lrn={"alpha": 0.11}), cnn(), IMAGE)
    assert comparison.first.name == "lrn"
    assert counts["Elu"] == 2
    assert counts["AvgPool"] == 3


def test_the_sign_of_zero_is_handed_on():
    """1/−0 and 1/0 differ, so a layer gets the zero of the other side."""

    def build(type: str) -> irload.Model:
        g = Graph()
        x = with_constant(g, type, g.parameter("x", "f32", [2]), 0.0, "zero")
        return model(g, with_constant(g, "Power", x, -1.0, "inverse"))

    comparison = irload.compare(build("Multiply"), build("Add"), -np.ones(2, np.float32) * 0)
    assert [e.name for e in comparison.layers if e.own is not None and not e.own.passed] == []
    assert not {e.name: e for e in comparison.layers}["inverse"].total.passed


def test_plans_of_models_with_state_are_compared():
    decoder = Decoder(1)
    rng = np.random.default_rng(0)
    feed = [rng.standard_normal((2, 5, decoder.width)).astype(np.float32)]
    feed += [np.ones((2, 5), np.int64)] * decoder.has_mask + [np.arange(2, dtype=np.int32)] * decoder.has_beam
    comparison = irload.compare("fast", decoder.model, feed)
    assert comparison.passed
    assert "Transpose" not in {layer.operation for layer in comparison.layers}, "which is a view in plans"


def test_nothing_to_compare_is_an_error(tmp_path):
    np.savez(tmp_path / "x.npz", other=ROWS)
    with pytest.raises(irload.InputInvalid, match="matches"):
        irload.compare(rows(), tmp_path / "x.npz", ROWS)
    with pytest.raises(irload.InputInvalid, match="must be a model"):
        irload.compare("fast", "plain", ROWS)


def test_a_notebook_shows_hostile_names_as_text():
    g, h = Graph(), Graph()
    a = model(g, unary(g, "Abs", g.parameter("x", "f32", [2]), "<script>"))
    b = model(h, unary(h, "Exp", h.parameter("x", "f32", [2]), "<script>"))
    comparison = irload.compare(a, b, np.ones(2, np.float32))
    assert comparison.first.name == "<script>"
    assert "<script>" not in comparison._repr_html_()
    assert "&lt;script&gt;" in comparison._repr_html_()


@pytest.mark.parametrize("make", [cnn, rows, half])
def test_openvino_agrees(tmp_path, make):
    irload.save_model(make(), tmp_path / "m.xml")
    comparison = irload.compare("openvino", tmp_path / "m.xml", inputs_of(make))
    assert comparison.passed, str(comparison)
    assert comparison.unmatched == 0


def test_openvino_names_a_planted_fault(tmp_path):
    """Here the plain side runs the faulty model, because OpenVINO runs the given file."""
    irload.save_model(cnn(), tmp_path / "m.xml")
    loaded = irload.read_model(tmp_path / "m.xml")
    faulty = next(n for n in loaded.nodes if n.name == "elu")
    faulty.op = type(faulty.op)(alpha=1.05)
    comparison = irload.compare(loaded, "openvino", IMAGE)
    assert [e.name for e in comparison.layers if not e.passed] == ["elu"]


@pytest.mark.parametrize("precision", ["bf16", "f16"])
def test_openvino_in_another_precision_is_judged_by_it(tmp_path, precision):
    irload.save_model(cnn(), tmp_path / "m.xml")
    comparison = irload.compare(f"openvino:{precision}", tmp_path / "m.xml", IMAGE)
    assert comparison.passed, str(comparison)
    computed = openvino_precision(precision)  # bf16 for f16 if the processor supports only that, otherwise f32
    assert {e.tolerance for e in comparison.layers if e.type == "f32"} == {TOLERANCES[computed]}
    assert (f"in {computed}, as this processor has no {precision}" in str(comparison)) == (computed != precision)

"""diff reports exactly the edits, and nothing for equivalent models."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.comparison.weights import value_change
from models.ir import Graph
from tests.inside.nets import looped, model, unary, with_constant
from tests.inside.test_compare import cnn, half, inner, rows
from tests.planted_edits import Copy, plant

MODELS = sorted((Path(__file__).parents[2] / "models").glob("*/model.xml"))
DIGITS = next(m for m in MODELS if m.parent.name == "digits")


def kinds(difference: irload.Difference) -> list[tuple[str, str, str]]:
    return [(e.kind, e.name, ", ".join(c.label for c in e.changes)) for e in difference.edits]


@pytest.mark.parametrize("file", MODELS, ids=lambda f: f.parent.name)
def test_a_saved_model_is_the_same(file, tmp_path):
    irload.save_model(irload.read_model(file), tmp_path / "m.xml")
    differences = irload.diff(file, tmp_path / "m.xml")
    assert differences.same, differences.lines()
    assert differences.kind == "same"
    assert not differences.follows


@pytest.mark.parametrize("file", MODELS, ids=lambda f: f.parent.name)
def test_planted_edits_are_reported_exactly(file, tmp_path):
    copy, rng = Copy(file, tmp_path), np.random.default_rng(int(file.stat().st_size))
    count = 0
    for _ in range(60):
        planted = plant(copy, rng)
        if planted is not None:
            edit, differences = planted
            assert edit.is_found(differences), (edit, differences.lines())
            count += 1
        if count == 12:
            break
    assert count >= 6


def test_old_models_are_compared_after_conversion(tmp_path):
    text = DIGITS.read_text(encoding="utf-8").replace('version="11"', 'version="10"')
    (tmp_path / "old.xml").write_text(text, encoding="utf-8")
    old = irload.read_model(tmp_path / "old.xml", DIGITS.with_suffix(".bin"))
    assert old.ir_version == 10
    irload.save_model(old, tmp_path / "new.xml")
    assert irload.diff(old, tmp_path / "new.xml").same
    assert irload.diff(tmp_path / "new.xml", old).same


def test_converts_that_one_old_model_writes_out_are_no_difference(tmp_path):
    g = Graph()
    g.result(unary(g, "Abs", g.parameter("x", "f16", [2]), "abs"), "end")
    old = irload.read_model(f'<net name="m" version="10">{g.text()}</net>'.encode(), b"")
    irload.save_model(old, tmp_path / "m.xml")
    text = (tmp_path / "m.xml").read_text(encoding="utf-8").replace('version="11"', 'version="10"', 1)
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    explicit = irload.read_model(tmp_path / "m.xml")
    assert (old.ir_version, explicit.ir_version) == (10, 10)
    assert irload.diff(old, explicit).same
    assert irload.diff(explicit, old).same


@pytest.mark.parametrize("turned", [False, True])
def test_compression_is_summarized_in_one_line(tmp_path, turned):
    loaded = irload.read_model(DIGITS)
    irload.save_model(loaded, tmp_path / "half.xml", compress_to_fp16=True)
    pair = (loaded, tmp_path / "half.xml")
    differences = irload.diff(*(pair[::-1] if turned else pair))
    assert differences.kind == "compressed"
    assert re.match(
        "only the precision of weights differs: 7 constants in f(16 for f32|32 for f16)", differences.summary
    )
    assert {c.what for e in differences.edits for c in e.changes} == {"storage"}
    assert not differences.follows


def test_weights_that_were_compressed_and_changed_differ_in_values(tmp_path):
    loaded = irload.read_model(DIGITS)
    irload.save_model(loaded, tmp_path / "half.xml", compress_to_fp16=True)
    raw = bytearray((tmp_path / "half.bin").read_bytes())
    raw[1] ^= 0x40
    (tmp_path / "half.bin").write_bytes(raw)
    differences = irload.diff(loaded, tmp_path / "half.xml")
    assert [c.what for e in differences.edits for c in e.changes].count("values") == 1
    assert differences.kind == "structure"


def test_shapes_and_weights_are_summarized_in_one_line():
    other = irload.read_model(DIGITS).reshape([4, 1, 8, 8])
    differences = irload.diff(DIGITS, other)
    assert differences.kind == "shapes"
    assert differences.summary.startswith("only shapes differ: image [?,1,8,8] → [4,1,8,8]; ")
    assert [e.name for e in differences.edits] == ["image"]
    assert "conv0" in [f.name for f in differences.follows]
    differences = irload.diff(cnn(), cnn(w1=lambda w: w * 2))
    assert differences.kind == "weights"
    assert differences.summary == "only weights differ: 1 constant, relative RMS of the changes at most 1"
    assert differences.lines()[2:] == [
        "@@ w1 (Const) @@",
        f"~  values: 108 of 108 values differ, by {np.abs(weights('w1')).max():.3g} at most, relative RMS 1",
    ]


def weights(name: str) -> np.ndarray:
    return next(n for n in cnn().nodes if n.name == name).op.attributes["data"]()


@pytest.mark.parametrize("make", [cnn, rows, half, inner])
def test_layers_with_other_names(make):
    loaded, other = make(), make()
    for k, node in enumerate(n for g in other.walk() for n in g.nodes if n.type not in ("Parameter", "Result")):
        node.name = f"renamed{k}"
    differences = irload.diff(loaded, other)
    assert differences.kind == "names", differences.lines()
    assert all(e.kind == "changed" for e in differences.edits)


@pytest.mark.parametrize("named", ["", "same"])
def test_layers_without_unique_names_match_around_an_edit(named):
    def chain(types: str) -> irload.Model:
        g = Graph()
        x = g.parameter("x", "f32", [2, 3])
        for k, type in enumerate(types.split()):
            x = with_constant(g, type, x, k, named) if type == "Add" else unary(g, type, x, named)
        loaded = model(g, x)
        for node in loaded.nodes:
            node.name = named if node.type in types else node.name
        return loaded

    before = "Abs Add Exp Tanh Add Abs Tanh Exp"
    assert irload.diff(chain(before), chain(before)).same
    added = irload.diff(chain(before), chain("Abs Add Exp Floor Tanh Add Abs Tanh Exp"))
    assert [(e.kind, e.operation) for e in added.edits if e.kind != "changed"] == [("added", "Floor")]
    removed = irload.diff(chain(before), chain("Abs Add Tanh Add Abs Tanh Exp"))
    assert [(e.kind, e.operation) for e in removed.edits if e.kind != "changed"] == [("removed", "Exp")]


def test_an_edit_in_a_body_has_the_way_to_it():
    differences = irload.diff(inner(), inner(slope=1.2))
    assert kinds(differences) == [("changed", "loop/body/slope_c", "values")]
    differences = irload.diff(inner(), inner(type="Maximum"))
    assert kinds(differences) == [("changed", "loop/body/shifted", "type")]


def test_a_layer_in_an_edge_is_no_rewiring():
    def chain(*types: str) -> irload.Model:
        g = Graph()
        x = g.parameter("x", "f32", [2])
        for type in types:
            x = unary(g, type, x, type)
        return model(g, x)

    differences = irload.diff(chain("Abs", "Exp"), chain("Abs", "Tanh", "Floor", "Exp"))
    assert [(e.kind, e.name, e.place) for e in differences.edits if e.operation != "Result"] == [
        ("added", "Tanh", "fed by Abs"),
        ("added", "Floor", "fed by Tanh, feeding Exp"),
    ]
    turned = irload.diff(chain("Abs", "Exp"), chain("Exp", "Abs"))
    assert kinds(turned) == [("changed", "Exp", "input 0"), ("changed", "Abs", "input 0"), *kinds(turned)[2:]]


def test_inputs_in_another_order():
    def two(first: str, second: str) -> irload.Model:
        g = Graph()
        a, b = (g.parameter(n, "f32", [2]) for n in (first, second))
        out = g.layer("Subtract", sorted([a, b], key=lambda r: r.layer if first == "a" else -r.layer), [("f32", [2])])
        return model(g, out[0])

    assert kinds(irload.diff(two("a", "b"), two("b", "a")))[-1] == ("changed", "inputs", "order")


def test_changed_back_edges_are_reported():
    one = looped(lambda g, x: unary(g, "Tanh", x, "tanh"), "f32", [2])
    other = looped(lambda g, x: unary(g, "Tanh", x, "tanh"), "f32", [2])
    loop = next(n for n in other.nodes if n.type == "Loop")
    wiring = loop.op.attributes["body"]
    changed = type(wiring)(wiring.body, wiring.inputs, wiring.outputs, ())
    loop.op = type(loop.op)(**{**loop.op.attributes, "body": changed})
    differences = irload.diff(one, other)
    assert kinds(differences) == [("changed", "loop", "body")]
    assert differences.edits[0].changes[0].a == "end → value"


def test_values():
    a = np.array([1, 2, 0, np.nan], np.float32)
    assert value_change(a, a.copy()) is None
    change = value_change(a, np.array([1, 2.5, -0.0, np.nan], np.float32))
    assert (change.size, change.differing, change.max_abs) == (4, 2, 0.5)
    assert change.relative == pytest.approx(0.5 / np.sqrt(5))
    assert value_change(a, a[:2]).differing == 4
    assert value_change(a, a.astype(np.float64)) is None
    texts = np.array(["a", "b"], object)
    assert value_change(texts, np.array(["a", "c"], object)).differing == 1


def test_a_notebook_shows_hostile_names_as_text():
    g, h = Graph(), Graph()
    a = model(g, unary(g, "Abs", g.parameter("x", "f32", [2]), "<script>"))
    b = model(h, unary(h, "Exp", h.parameter("x", "f32", [2]), "<script>"))
    shown = irload.diff(a, b)._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown

"""irrun run: inputs from files of all formats, random ones, outputs printed and written."""

from __future__ import annotations

import re

import click
import ml_dtypes
import numpy as np
import pytest

import irload
from irload.core.shape import Shape
from irrun.feed import gather, random_value
from irrun.main import OK, UNREADABLE, USAGE
from irrun.output_files import file_names
from tests.cli.conftest import MODELS

DIGITS = MODELS / "digits"
SEVEN = DIGITS / "digit_7_0.npy"
LOOP = MODELS / "loop"
NET = '<net name="m" version="11"><layers>{}</layers><edges>{}</edges></net>'


def identity(*inputs: tuple[str, str, str]) -> bytes:
    """A model that returns its inputs: (name, element type, shape text) each."""
    layers, edges = "", ""
    for k, (name, element, shape) in enumerate(inputs):
        precision = {"f32": "FP32", "bf16": "BF16", "i64": "I64", "i32": "I32", "boolean": "BOOL", "string": "STRING"}[
            element
        ]
        layers += (
            f'<layer id="{k}" name="layer{k}" type="Parameter" version="opset1"><data shape="{shape}" '
            f'element_type="{element}"/><output><port id="0" precision="{precision}" names="{name}"/></output></layer>'
            f'<layer id="{100 + k}" name="r{k}" type="Result" version="opset1"><input><port id="0"/></input></layer>'
        )
        edges += f'<edge from-layer="{k}" from-port="0" to-layer="{100 + k}" to-port="0"/>'
    return NET.format(layers, edges).encode()


@pytest.fixture
def two(tmp_path):
    """A model that returns its two inputs, a f32[2] and b f32[3], and files for them."""
    (tmp_path / "m.xml").write_bytes(identity(("a", "f32", "2"), ("b", "f32", "3")))
    np.save(tmp_path / "a.npy", np.array([1, 2], np.float32))
    np.save(tmp_path / "b.npy", np.array([3, 4, 5], np.float32))
    np.savez(tmp_path / "named.npz", b=np.array([3, 4, 5], np.float32), a=np.array([1, 2], np.float32))
    np.savez(tmp_path / "ordered.npz", np.array([1, 2], np.float32), np.array([3, 4, 5], np.float32))
    return tmp_path


def test_the_word_run_may_be_omitted(irrun):
    assert irrun(DIGITS / "model.xml", SEVEN).out == irrun("run", DIGITS / "model.xml", SEVEN).out


def test_top_names_the_digit(irrun):
    words = ("--top", 3, "--labels", DIGITS / "labels.txt", "--json")
    (output,) = irrun(DIGITS / "model.xml", SEVEN, *words).json["outputs"]
    best, second, third = output["top"][0]
    assert (best["index"], best["label"]) == (7, "seven")
    assert best["value"] > second["value"] > third["value"]


def test_top_ignores_axes_of_size_1_at_the_end(irrun, tmp_path):
    """Classifiers of Caffe end in [1,1000,1,1]."""
    np.save(tmp_path / "scores.npy", np.array([[3, 9, 5]], np.float32).reshape(1, 3, 1, 1))
    (tmp_path / "names.txt").write_text("cat\ndog\nfox\n")
    (tmp_path / "m.xml").write_bytes(identity(("scores", "f32", "1,3,1,1")))
    words = (tmp_path / "m.xml", tmp_path / "scores.npy", "--top", 2, "--labels", tmp_path / "names.txt")
    (output,) = irrun(*words, "--json").json["outputs"]
    assert [[entry["label"] for entry in row] for row in output["top"]] == [["dog", "fox"]]
    assert "more rows" not in irrun(*words).out


def test_top_of_a_batch_of_single_numbers_has_a_row_for_each(irrun, tmp_path):
    np.save(tmp_path / "scores.npy", np.arange(3, dtype=np.float32).reshape(3, 1))
    (tmp_path / "m.xml").write_bytes(identity(("scores", "f32", "3,1")))
    (output,) = irrun(tmp_path / "m.xml", tmp_path / "scores.npy", "--top", 2, "--json").json["outputs"]
    assert [[entry["value"] for entry in row] for row in output["top"]] == [[0], [1], [2]]


def test_labels_must_fit_an_output(irrun, tmp_path):
    names = tmp_path / "names.txt"

    def refused(content):
        names.write_bytes(content)
        outcome = irrun(DIGITS / "model.xml", SEVEN, "--top", 3, "--labels", names, "-o", tmp_path / "o.npz")
        assert outcome.code == USAGE
        assert not (tmp_path / "o.npz").exists()
        return " ".join(outcome.err.split())

    assert "3 names, but output 'probabilities' has 10 values along its last axis" in refused(b"a\nb\nc\n")
    assert "11 names, but output 'probabilities' has 10 values" in refused(b"x\n" * 11)
    assert "is not a UTF-8 text file; --labels takes one name per line" in refused(b"\x89PNG\r\n")


@pytest.mark.parametrize(
    "words",
    [
        ["a.npy", "b.npy"],
        ["a=a.npy", "b=b.npy"],
        ["b=b.npy", "a.npy"],
        ["layer1=b.npy", "layer0=a.npy"],
        ["named.npz"],
        ["ordered.npz"],
        ["a=named.npz", "b=named.npz"],
    ],
)
def test_inputs_by_order_and_by_name(irrun, two, monkeypatch, words):
    monkeypatch.chdir(two)
    outcome = irrun("m.xml", *words, "--json")
    assert outcome.code == OK
    assert [o["first"] for o in outcome.json["outputs"]] == [[1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a.npy"], USAGE, "no value for input 'b' f32[3]"),
        (["a.npy", "b.npy", "a.npy"], USAGE, "more files than inputs; the model has 2"),
        (["b.npy", "a.npy"], USAGE, "b.npy has shape [3]; input 'a' takes [2]"),
        (["a=a.npy", "a=a.npy", "b.npy"], USAGE, "input 'a' was given twice"),
        (["c=a.npy", "a.npy", "b.npy"], USAGE, "no input 'c'; it has 'a', 'b'"),
        (["a.npy", "m.xml"], UNREADABLE, "m.xml"),
        (["a.npy", "b=gone.npy"], UNREADABLE, "gone.npy"),
    ],
)
def test_inputs_that_do_not_fit(irrun, two, monkeypatch, words, code, said):
    monkeypatch.chdir(two)
    outcome = irrun("m.xml", *words)
    assert outcome.code == code
    assert said in outcome.err


def test_a_name_may_hold_an_equals_sign(irrun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.xml").write_bytes(identity(("x=y", "f32", "2")))
    np.save(tmp_path / "a=b.npy", np.array([1, 2], np.float32))
    assert irrun("m.xml", "x=y=a=b.npy").code == OK
    assert irrun("m.xml", "a=b.npy").code == OK


def test_bf16_accepts_floats_and_rounds_them(irrun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.xml").write_bytes(identity(("x", "bf16", "2")))
    np.save(tmp_path / "exact.npy", np.array([1.5, -2], np.float32))
    np.save(tmp_path / "inexact.npy", np.array([0.1, 1], np.float32))
    assert irrun("m.xml", "exact.npy", "--json").json["outputs"][0]["first"] == [1.5, -2]
    assert irrun("m.xml", "inexact.npy", "--json").json["outputs"][0]["first"] == pytest.approx([0.10009766, 1])


# -- random inputs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("element", "shape", "allowed"),
    [
        ("i64", "1,16", {0, 1}),
        ("i32", "1", {0}),
        ("i64", "", {1}),
        ("boolean", "8", {False, True}),
        ("string", "2", {"irload"}),
    ],
)
def test_random_integers_are_safe_as_indices(element, shape, allowed):
    model = irload.read_model(identity(("x", element, shape)))
    value = random_value(model.inputs[0], np.random.default_rng(1))
    assert set(value.ravel().tolist()) <= allowed
    assert value.dtype == model.inputs[0].element_type.dtype


def test_random_floats_fill_the_type_of_the_model():
    model = irload.read_model(identity(("x", "bf16", "2,3")))
    value = random_value(model.inputs[0], np.random.default_rng(1))
    assert value.dtype == ml_dtypes.bfloat16
    assert Shape(*value.shape) == (2, 3)


def test_random_inputs_are_limited_by_numpy():
    (many,) = irload.read_model(identity(("x", "f32", "1" + ",1" * 70))).inputs
    with pytest.raises(click.UsageError, match="71 axes"):
        gather([many], [], 1)
    (large,) = irload.read_model(identity(("x", "f32", "1000000000,1000000000"))).inputs
    with pytest.raises(irload.LimitExceeded, match="too large to be filled"):
        gather([large], [], 1)


def test_one_seed_gives_one_result(irrun):
    def first(seed: int) -> list[float]:
        return irrun(MODELS / "pad_openvino" / "model.xml", "--random", seed, "--json").json["outputs"][1]["first"]

    assert first(1) == first(1) != first(2)


def test_dynamic_inputs_require_a_shape(irrun):
    outcome = irrun(DIGITS / "model.xml", "--random", 1)
    assert outcome.code == USAGE
    assert "--shape 'image[1,1,8,8]'" in outcome.err
    shaped = irrun(DIGITS / "model.xml", "--random", 1, "--shape", "image[3,1,8,8]", "--json")
    assert shaped.json["outputs"][0]["shape"] == [3, 10]


@pytest.mark.parametrize(
    ("text", "said"),
    [("image", "not of the form"), ("[1,x]", "is not a dimension"), ("other[1]", "no input named 'other'")],
)
def test_shapes_that_cannot_be_read(irrun, text, said):
    outcome = irrun(DIGITS / "model.xml", "--random", 1, "--shape", text)
    assert outcome.code == USAGE
    assert said in outcome.err


def test_a_shape_that_the_model_rejects(irrun):
    outcome = irrun(DIGITS / "model.xml", "--random", 1, "--shape", "[1,2,8,8]")
    assert outcome.code == USAGE
    assert "Convolution 'conv0'" in outcome.err


def test_random_fills_the_inputs_without_files(two):
    ports = irload.read_model(two / "m.xml").inputs
    a, b = gather(ports, [f"b={two / 'b.npy'}"], 5)
    assert a.source == "random, seed 5"
    assert b.value.tolist() == [3, 4, 5]


# -- outputs -----------------------------------------------------------------------------------------------------------


def test_npz(irrun, tmp_path):
    file = tmp_path / "out.npz"
    assert irrun(LOOP / "model.xml", *sorted(LOOP.glob("input_*.npy")), "-o", file).code == OK
    with np.load(file) as saved:
        assert list(saved) == ["last", "every"]
        np.testing.assert_array_equal(saved["every"], np.load(LOOP / "expected_1.npy"))


def test_folder(irrun, tmp_path):
    folder = tmp_path / "new" / "out"
    assert irrun(LOOP / "model.xml", *sorted(LOOP.glob("input_*.npy")), "-o", folder).code == OK
    assert sorted(f.name for f in folder.iterdir()) == ["every.npy", "last.npy"]


def test_a_file_is_no_folder(irrun, tmp_path):
    file = tmp_path / "out"
    file.write_text("precious")
    refused = irrun(DIGITS / "model.xml", SEVEN, "-o", file, "--force")
    assert refused.code == USAGE
    assert "out is a file, but an output without a suffix is a folder" in refused.err
    assert file.read_text() == "precious"


def test_existing_files_are_kept(irrun, tmp_path):
    file = tmp_path / "out.npy"
    file.write_text("precious")
    refused = irrun(DIGITS / "model.xml", SEVEN, "-o", file)
    assert refused.code == USAGE
    assert "--force" in refused.err
    assert file.read_text() == "precious"
    assert irrun(DIGITS / "model.xml", SEVEN, "-o", file, "--force").code == OK
    assert np.load(file).shape == (1, 10)


def test_one_npy_cannot_hold_two_outputs(irrun, tmp_path):
    assert irrun(LOOP / "model.xml", "-o", tmp_path / "o.npy", *sorted(LOOP.glob("input_*.npy"))).code == USAGE
    assert not list(tmp_path.iterdir())


def test_file_names_are_safe_and_unlike():
    model = irload.read_model(
        identity(("../../etc/x", "f32", "1"), ("a b", "f32", "1"), ("A b", "f32", "1"), ("…", "f32", "1"))
    )
    assert file_names(model.inputs) == ["_.._etc_x", "a_b", "A_b_2", "_"]


def test_numbers_that_are_not_finite(irrun, tmp_path):
    (tmp_path / "m.xml").write_bytes(identity(("x", "f32", "4")))
    np.save(tmp_path / "x.npy", np.array([1, np.nan, np.inf, 3], np.float32))
    (output,) = irrun(tmp_path / "m.xml", tmp_path / "x.npy", "--top", 3, "--json").json["outputs"]
    assert (output["min"], output["max"], output["mean"], output["nonfinite"]) == (1, 3, 2, 2)
    assert output["first"] == [1, "NaN", "Infinity", 3]
    assert [t["index"] for t in output["top"][0]] == [2, 3, 0]
    assert "2 values are NaN or infinite" in irrun(tmp_path / "m.xml", tmp_path / "x.npy").out


def test_the_profile_names_layers(irrun, monkeypatch):
    words = ("run", DIGITS / "model.xml", SEVEN, "--profile")
    for width, columns in ("120", "operation +layer +kernel +shape +ms"), ("80", "operation +layer +kernel +ms"):
        monkeypatch.setenv("COLUMNS", width)
        assert re.search(columns, irrun(*words).out)
    assert re.search(r"\nMatMul\+Add +dense/bias ", irrun(*words, "--no-jit").out)

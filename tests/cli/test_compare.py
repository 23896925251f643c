"""irrun compare: the verdict, the exit code, the document, and models that are not comparable."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from irrun.main import FINDINGS, OK, UNREADABLE, UNSUPPORTED, USAGE
from tests.cli.conftest import MODELS

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "compare.schema.json").read_text(encoding="utf-8"))
DIGITS = MODELS / "digits" / "model.xml"
SEVEN = MODELS / "digits" / "digit_7_0.npy"


@pytest.fixture
def wrong(tmp_path):
    text = DIGITS.read_text(encoding="utf-8")
    shifted = text.replace('pads_begin="1,1" pads_end="1,1"', 'pads_begin="0,0" pads_end="2,2"', 1)
    (tmp_path / "wrong.xml").write_text(shifted, encoding="utf-8")
    (tmp_path / "wrong.bin").write_bytes(DIGITS.with_suffix(".bin").read_bytes())
    return tmp_path / "wrong.xml"


def test_one_output_is_counted_in_the_singular(irrun):
    done = irrun("compare", "fast", MODELS / "conv_onednn" / "model.xml", "--random", 0)
    assert "agree in 1 layer output\n" in done.out


@pytest.mark.parametrize("sides", [("fast", DIGITS), (DIGITS, "fast"), (DIGITS, DIGITS), ("openvino", DIGITS)])
def test_ways_that_agree(irrun, sides):
    done = irrun("compare", *sides, SEVEN)
    assert done.code == OK
    assert done.out.startswith("PASSED")


def test_ways_without_a_model(irrun):
    assert irrun("compare", "fast", "plain", SEVEN).code == USAGE
    assert irrun("compare", "fast", "plain", SEVEN, "--model", DIGITS).code == OK


def test_the_layer_is_named(irrun, wrong):
    done = irrun("compare", wrong, DIGITS, SEVEN)
    assert done.code == FINDINGS
    assert done.out.splitlines()[-1].endswith("first diverge in conv0 (Convolution)")
    document = irrun("compare", wrong, DIGITS, SEVEN, "--json").json
    Draft202012Validator(SCHEMA).validate(document)
    assert document["first"] == "conv0"
    assert [layer["name"] for layer in document["layers"] if not layer["passed"]] == ["conv0"]
    assert len(irrun("compare", wrong, DIGITS, SEVEN, "--all").out.splitlines()) > len(document["layers"])


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_numbers_stay_whole_in_any_width(irrun, wrong, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    done = irrun("compare", wrong, DIGITS, SEVEN, "--all")
    table = done.out.splitlines()[:-1]
    assert max(map(len, table)) <= width
    heads = table[0].split()
    assert ("cosine" in heads) == (width == 160)
    conv0, output = [line for line in table if line.startswith("≠")]
    assert output.split()[1].startswith("pro")
    assert conv0.split()[1:3] == ["conv0", "Convolution"[: len(conv0.split()[2])]]
    numbers = [float(cell) for cell in conv0.split() if cell[0].isdigit() and "/" not in cell]
    assert len(numbers) == (7 if width == 160 else 3)
    assert ("--json" in table[-1]) == (width < 160)


def test_dumps_of_another_machine(irrun, wrong, tmp_path):
    assert irrun("run", wrong, SEVEN, "--dump", tmp_path / "d").code == OK
    assert irrun("compare", tmp_path / "d", wrong, SEVEN).code == OK
    done = irrun("compare", tmp_path / "d", DIGITS, SEVEN, "--json")
    assert (done.code, done.json["first"]) == (FINDINGS, "conv0")


def test_tolerances_are_read(irrun, wrong):
    assert irrun("compare", wrong, DIGITS, SEVEN, "--tolerance", "conv0=100", "--tolerance", "softmax=100").code == OK
    for text in ("f32", "f32=", "=1", "f32=-1", "f32=nan"):
        assert irrun("compare", wrong, DIGITS, SEVEN, "--tolerance", text).code == USAGE
    outcome = irrun("compare", wrong, DIGITS, SEVEN, "--tolerance", "nope=1")
    assert outcome.code == USAGE
    assert "--tolerance: 'nope' is neither an element type nor a pattern" in " ".join(outcome.err.split())


def test_nan_is_null_in_json(irrun, tmp_path):
    np.save(tmp_path / "nan.npy", np.full((1, 1, 8, 8), np.nan, np.float32))
    same = irrun("compare", DIGITS, DIGITS.parent / "model.xml", tmp_path / "nan.npy", "--json")
    Draft202012Validator(SCHEMA).validate(same.json)
    assert same.code == OK
    (tmp_path / "d").mkdir()
    np.save(tmp_path / "d" / "softmax.npy", np.zeros((1, 10), np.float32))
    done = irrun("compare", DIGITS, tmp_path / "d", tmp_path / "nan.npy", "--json")
    Draft202012Validator(SCHEMA).validate(done.json)
    assert done.code == FINDINGS
    assert done.json["layers"][0]["own"]["needed"] is None


def test_invalid_dumps_are_rejected(irrun, tmp_path):
    assert irrun("compare", tmp_path, DIGITS, SEVEN).code == UNREADABLE
    (tmp_path / "index.json").write_text('{"arrays": [{"name": "conv0", "file": "../secret.npy"}]}')
    done = irrun("compare", tmp_path, DIGITS, SEVEN)
    assert done.code == UNREADABLE
    assert "outside" in done.err


def test_incomparable_models_are_an_error(irrun, tmp_path, monkeypatch):
    (tmp_path / "bad.xml").write_text(DIGITS.read_text(encoding="utf-8").replace('kernel="2,2"', 'kernel="99,99"'))
    (tmp_path / "bad.bin").write_bytes(DIGITS.with_suffix(".bin").read_bytes())
    for model in (tmp_path / "none.xml", tmp_path / "bad.xml"):
        done = irrun("compare", model, DIGITS, SEVEN, "--json")
        assert done.code == UNREADABLE
        Draft202012Validator(SCHEMA).validate(done.json)
        assert model.name in done.json["error"]
    monkeypatch.setitem(sys.modules, "openvino", None)
    done = irrun("compare", "openvino", DIGITS, SEVEN, "--json")
    assert done.code == UNSUPPORTED
    assert "pip install openvino" in done.json["error"]


def test_weights_shapes_and_threads(irrun, tmp_path, wrong):
    other = tmp_path / "other.bin"
    other.write_bytes(DIGITS.with_suffix(".bin").read_bytes())
    wrong.with_suffix(".bin").unlink()
    assert irrun("compare", wrong, DIGITS, SEVEN).code == UNREADABLE
    done = irrun("compare", wrong, DIGITS, SEVEN, "--weights-a", other, "--json")
    assert (done.code, done.json["first"]) == (FINDINGS, "conv0")
    assert irrun("compare", DIGITS, wrong, SEVEN, "--weights-b", other, "--json").json["first"] == "conv0"
    dynamic = MODELS / "digits" / "model.xml"
    refused = irrun("compare", "fast", dynamic, "--random", 0)
    assert refused.code == USAGE
    assert "give a file, or sizes, for example --shape 'image[1,1,8,8]'" in refused.err
    done = irrun("compare", "fast", dynamic, "--random", 0, "--shape", "[3,1,8,8]", "--threads", 1, "--json")
    assert (done.code, done.json["outputs"][0]["shape"]) == (OK, [3, 10])


def test_layers_are_sorted_by_their_errors(irrun, wrong, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    by_order = irrun("compare", wrong, DIGITS, SEVEN, "--all", "--layers", "conv?").out
    by_error = irrun("compare", DIGITS, wrong, SEVEN, "--all", "--layers", "conv?", "--sort", "own").out
    assert "psnr" in by_order.splitlines()[0]
    assert by_error.index("conv0") < by_error.index("conv1")
    two = irrun("compare", wrong, DIGITS, SEVEN, "--all", "--sort", "own").out
    assert two.index("conv0") == min(two.index(name) for name in ("conv0", "relu0", "pool0", "dense") if name in two)


def test_a_pattern_that_no_layer_matches(irrun):
    done = irrun("compare", "plain", DIGITS, SEVEN, "--layers", "nope")
    assert done.code == USAGE
    assert "no layer that ran matches 'nope'; irrun inspect --layers lists all layers" in done.err

"""irrun inspect with parts: one layer, constants, costs, bodies, filters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from irrun.main import FINDINGS, OK, USAGE
from tests.cli.conftest import MODELS
from tests.cli.test_inspect import broken

DIGITS = MODELS / "digits" / "model.xml"
LOOP = MODELS / "loop" / "model.xml"
EVERYTHING = ("--layers", "--constants", "--macs", "--memory", "--tree")
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "inspect.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", sorted(p.parent for p in MODELS.glob("*/model.xml")), ids=lambda f: f.name)
def test_every_part_of_every_model(irrun, folder):
    outcome = irrun("inspect", folder / "model.xml", *EVERYTHING, "--layer", "0", "--json")
    assert outcome.code == OK
    Draft202012Validator(SCHEMA).validate(outcome.json)
    shown = irrun("inspect", folder / "model.xml", *EVERYTHING, "--layer", "0")
    assert shown.code == OK
    assert "activations at their peak" in shown.out


@pytest.mark.parametrize(
    "change",
    [
        ('type="Convolution" version="opset1"', 'type="FooBar" version="opset1"'),
        ('strides="1,1"', 'strides="1,1,1"'),
        ("16,1,3,3", "8,2,3,3"),
        ('to-layer="22" to-port="0"', 'to-layer="99" to-port="0"'),
    ],
)
@pytest.mark.parametrize("weights", [True, False])
def test_faulty_models_are_shown(irrun, tmp_path, change, weights):
    file = broken(tmp_path, change, weights=weights)
    outcome = irrun("inspect", file, *EVERYTHING, "--layer", "conv0", "--json")
    assert outcome.code == OK
    Draft202012Validator(SCHEMA).validate(outcome.json)
    assert outcome.json["warnings"]


def test_one_layer(irrun):
    (row,) = irrun("inspect", DIGITS, "--layer", "conv1", "--json").json["layer"]
    assert (row["id"], row["type"], row["opset"], row["line"]) == (10, "Convolution", "opset1", 171)
    assert row["about"].startswith("Convolves data")
    values = {a["name"]: (a["value"], a["given"], a["default"]) for a in row["attributes"]}
    assert values["auto_pad"] == ("explicit", True, "explicit")
    assert values["strides"][:2] == ("1,1", True)
    assert [i["name"] for i in row["inputs"]] == ["data", "filters"]
    assert row["inputs"][1]["from"] == {"id": 9, "type": "Const", "name": "conv1/weights", "port": 0}
    assert row["outputs"][0]["consumers"] == [{"id": 12, "type": "Add", "name": "conv1/bias", "port": 0}]


def test_values_of_small_tensors_are_listed(irrun):
    layers = irrun("inspect", DIGITS, "--type", "Const", "--json").json["layers"]
    (shape,) = [r["id"] for r in layers if r["outputs"][0]["type"] == "i64"]
    (row,) = irrun("inspect", DIGITS, "--layer", shape, "--json").json["layer"]
    assert row["outputs"][0]["values"] == [0, -1]
    (row,) = irrun("inspect", DIGITS, "--layer", "conv1/weights", "--json").json["layer"]
    assert row["outputs"][0]["values"] is None


def test_layers_of_that_name_in_bodies(irrun):
    rows = irrun("inspect", LOOP, "--layer", "doubling/body/value", "--json").json["layer"]
    assert [(r["body"], r["type"]) for r in rows] == [("doubling/body", "Parameter")]


def test_an_unknown_layer_is_a_usage_error(irrun):
    outcome = irrun("inspect", DIGITS, "--layer", "conv9")
    assert outcome.code == USAGE
    assert "did you mean 'conv" in outcome.err


def test_a_fault_is_reported_with_its_layer(irrun, tmp_path):
    file = broken(tmp_path, ("16,1,3,3", "8,2,3,3"))
    (row,) = irrun("inspect", file, "--layer", "conv0", "--json").json["layer"]
    assert "conv0" in row["fault"]
    assert irrun("infer", file).code == FINDINGS


def test_statistics_of_constants(irrun):
    rows = irrun("inspect", DIGITS, "--constants", "--json").json["tensors"]
    raw = DIGITS.with_suffix(".bin").read_bytes()
    row = next(r for r in rows if r["name"] == "conv1/weights")
    values = np.frombuffer(raw[row["offset"] :][: row["bytes"]], np.float32)
    assert row["min"] == pytest.approx(values.min())
    assert row["max"] == pytest.approx(values.max())
    assert row["mean"] == pytest.approx(values.mean(dtype=np.float64))
    assert row["std"] == pytest.approx(values.std(dtype=np.float64))
    assert row["sparsity"] == np.mean(values == 0)
    assert row["nonfinite"] == 0


def constants(tmp_path, *arrays):
    """A model that consists of constants."""
    layers, edges, blob = "", "", b""
    for k, array in enumerate(arrays):
        element = {"f": "f", "i": "i", "b": "boolean"}[array.dtype.kind]
        element = element if element == "boolean" else f"{element}{array.dtype.itemsize * 8}"
        shape = ",".join(map(str, array.shape))
        offset = blob.find(array.tobytes()) if array.size else 0
        offset = len(blob) if offset < 0 else offset
        blob += array.tobytes() if offset == len(blob) else b""
        layers += (
            f'<layer id="{k}" name="c{k}" type="Const" version="opset1"><data element_type="{element}" shape="{shape}" '
            f'offset="{offset}" size="{max(array.nbytes, 1)}"/><output><port id="0" precision="FP32"/></output></layer>'
            f'<layer id="{k + 100}" name="r{k}" type="Result" version="opset1"><input><port id="0"/></input></layer>'
        )
        edges += f'<edge from-layer="{k}" from-port="0" to-layer="{k + 100}" to-port="0"/>'
    text = f'<net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
    (tmp_path / "m.xml").write_text(text)
    (tmp_path / "m.bin").write_bytes(blob)
    return tmp_path / "m.xml"


def test_odd_constants(irrun, tmp_path):
    odd = np.array([np.nan, np.inf, 0, 2], np.float32)
    file = constants(tmp_path, odd, odd, np.zeros((0, 3), np.float32), np.full(3, np.nan, np.float32), np.array([True]))
    rows = irrun("inspect", file, "--constants", "--json").json["tensors"]
    assert [rows[0][k] for k in ("min", "max", "mean", "std", "sparsity", "nonfinite")] == [0, 2, 1, 1, 0.25, 2]
    assert rows[0]["shared_with"] == ["c1"]
    assert rows[2]["sparsity"] is None
    assert (rows[3]["min"], rows[3]["nonfinite"]) == (None, 3)
    assert (rows[4]["min"], rows[4]["max"]) == (1, 1)
    big = constants(tmp_path, np.array([2**63 - 1, -(2**63)]))
    (row,) = irrun("inspect", big, "--constants", "--json").json["tensors"]
    assert (row["min"], row["max"]) == (-(2**63), 2**63 - 1)


def test_nonfinite_constants_are_reported(irrun, tmp_path):
    odd = np.array([np.nan, np.inf, 0, 2], np.float32)
    file = constants(tmp_path, odd, odd, np.ones(2, np.float32))
    assert "2 of these" in irrun("inspect", file, "--constants", "--name", "c[01]").out


def test_macs(irrun):
    document = irrun("inspect", DIGITS, "--macs", "--shape", "[1,1,8,8]", "--json").json["macs"]
    assert [r["macs"] for r in document["layers"]] == [64 * 16 * 9, 16 * 32 * 16 * 9, 1280]
    assert document["total"] == 84224
    assert document["unknown"] == 0
    unknown = irrun("inspect", DIGITS, "--macs", "--json").json["macs"]
    assert (unknown["total"], unknown["unknown"]) == (0, 3)
    assert "--shape" in irrun("inspect", DIGITS, "--macs").out


def test_tree(irrun):
    (row,) = irrun("inspect", LOOP, "--tree", "--json").json["tree"]
    (body,) = row["bodies"]
    assert body["inputs"] == [{"port": 2, "parameter": "value", "how": "merged"}]
    assert body["back_edges"] == [{"result": "value_out", "parameter": "value"}]
    assert "no layer has a body" in irrun("inspect", DIGITS, "--tree").out


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--type", "convolution"], {"conv0", "conv1"}),
        (["--type", "Conv*", "--name", "*1"], {"conv1"}),
        (["--name", "conv0", "--name", "dense"], {"conv0", "dense"}),
        (["--type", "Nothing"], set()),
    ],
)
def test_filters(irrun, words, names):
    assert {r["name"] for r in irrun("inspect", DIGITS, *words, "--json").json["layers"]} == names


def test_filters_of_bodies(irrun):
    rows = irrun("inspect", LOOP, "--name", "doubling/body/*", "--json").json["layers"]
    assert len(rows) == 5


def test_the_bin_file(irrun, tmp_path):
    file = broken(tmp_path, weights=False)
    document = irrun("inspect", file, "--weights", DIGITS.with_suffix(".bin"), "--constants", "--json").json
    assert all(r["min"] is not None for r in document["tensors"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--type", "Conv"), "no layer matches --type 'Conv'\n"),
        (("--layers", "--name", "nope*", "--type", "Conv*"), "no layer matches --type 'Conv*' --name 'nope*'\n"),
        (("--constants", "--type", "ReLU"), "no constant matches --type 'ReLU'\n"),
    ],
)
def test_filters_that_match_nothing(irrun, words, said):
    done = irrun("inspect", DIGITS, *words)
    assert done.code == OK
    assert said in done.out
    assert "operation" not in done.out

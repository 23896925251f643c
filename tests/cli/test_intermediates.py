"""irrun run --dump and --check-finite."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from irrun.main import FINDINGS, OK, UNREADABLE, USAGE
from models.ir import Graph
from tests.cli.conftest import MODELS
from tests.inside.nets import saved, unary, with_constant

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "run.schema.json").read_text(encoding="utf-8"))
LOOP = [MODELS / "loop" / name for name in ("model.xml", "input_0.npy", "input_1.npy")]


@pytest.fixture
def rooted(tmp_path):
    g = Graph()
    x = with_constant(g, "Subtract", g.parameter("x", "f32", [4]), 2, "shift")
    np.save(tmp_path / "x.npy", np.array([1, 2, 3, 4], np.float32))
    return saved(tmp_path, g, unary(g, "Sqrt", x, "root"))


def test_dump_writes_the_chosen_layers(irrun, tmp_path):
    done = irrun(*LOOP, "--dump", tmp_path / "d", "--layers", "doubled", "--json")
    Draft202012Validator(SCHEMA).validate(done.json)
    assert done.code == OK
    assert done.json["dump"]["arrays"] == 4
    assert done.json["dump"]["bytes"] == sum(f.stat().st_size for f in (tmp_path / "d").glob("*.npy"))
    assert np.load(tmp_path / "d" / "doubling_body_3_doubled.npy").tolist() == [[16, 48]]
    again = irrun(*LOOP, "--dump", tmp_path / "d")
    assert again.code == USAGE
    assert "--force" in again.err
    assert irrun(*LOOP, "--dump", tmp_path / "d", "--force").code == OK


def test_dump_obeys_limits(irrun, tmp_path):
    done = irrun(*LOOP, "--dump", tmp_path / "d", "--limit", "dump-bytes=200")
    assert done.code == UNREADABLE
    assert "dump-bytes" in done.err


@pytest.mark.parametrize("words", [("--layers", "x"), ("--subnormals",)])
def test_options_that_need_another(irrun, words):
    assert irrun(*LOOP, *words).code == USAGE


def test_layers_that_do_not_exist(irrun, tmp_path):
    done = irrun(*LOOP, "--dump", tmp_path / "d", "--layers", "nowhere")
    assert done.code == USAGE
    assert "nowhere" in done.err


def test_finite_models_pass(irrun):
    done = irrun(*LOOP, "--check-finite")
    assert done.code == OK
    assert "PASSED" in done.out


def test_the_layer_is_named(irrun, rooted):
    done = irrun(rooted, rooted.parent / "x.npy", "--check-finite")
    assert done.code == FINDINGS
    assert "first nan, from finite inputs: root (Sqrt, id 3, line" in done.out
    assert "1 NaN" in done.out
    document = irrun(rooted, rooted.parent / "x.npy", "--check-finite", "--json").json
    Draft202012Validator(SCHEMA).validate(document)
    (layer,) = document["finite"]["layers"]
    assert (layer["name"], layer["inputs"][0]["min"], layer["output"]["nan"]) == ("root", -1, 1)

"""irrun extract and irrun edit: parts and steps, in the order given."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from jsonschema import validate

import irload
from irrun.main import OK, USAGE
from tests.cli.conftest import MODELS

DIGITS = MODELS / "digits" / "model.xml"
IMAGE = np.load(MODELS / "digits" / "digit_7_0.npy")
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "edit.schema.json").read_text(encoding="utf-8"))


def test_two_parts_of_a_model(irrun, tmp_path: Path) -> None:
    assert irrun("extract", DIGITS, "--to", "pool0", "-o", tmp_path / "a.xml").code == OK
    outcome = irrun("extract", DIGITS, "--from", "pool0", "-o", tmp_path / "b.xml", "--json")
    assert outcome.code == OK
    validate(outcome.json, SCHEMA)
    assert outcome.json["inputs"] == [{"name": "pool0", "type": "f32", "shape": "[?,16,4,4]"}]
    middle = irload.compile_model(tmp_path / "a.xml")(IMAGE)[0]
    expected = irload.compile_model(DIGITS)(IMAGE)[0]
    np.testing.assert_allclose(irload.compile_model(tmp_path / "b.xml")(middle)[0], expected, atol=1e-6)


def test_steps_are_applied_in_order(irrun, tmp_path: Path) -> None:
    words = (
        "--rename",
        "image=x",
        "--strip",
        "names",
        "--rename",
        "x=photo",
        "--set-batch",
        "2",
        "--rename",
        "ReLU_*=r*",
    )
    outcome = irrun("edit", DIGITS, *words, "-o", tmp_path / "new.xml", "--json")
    assert outcome.code == OK
    validate(outcome.json, SCHEMA)
    assert outcome.json["edits"] == [
        "rename image=x",
        "strip names",
        "rename x=photo",
        "set-batch 2",
        "rename ReLU_*=r*",
    ]
    model = irload.read_model(tmp_path / "new.xml")
    assert [str(p) for p in model.inputs] == ["<photo f32[2,1,8,8]>"]
    assert {"r0", "r1"} <= {n.name for n in model.nodes}
    wrong = irrun("edit", DIGITS, "--rename", "ReLU_*=r*", "--strip", "names", "-o", tmp_path / "no.xml")
    assert wrong.code == USAGE
    assert "no layer or tensor 'ReLU_*'" in wrong.err
    assert not (tmp_path / "no.xml").exists()


def test_consecutive_renames_are_one_step(irrun, tmp_path: Path) -> None:
    words = ("--rename", "pool0=pool1", "--rename", "pool1=pool0", "--extract", "image -> pool0, pool1")
    assert irrun("edit", DIGITS, *words, "-o", tmp_path / "new.xml").code == OK
    shapes = [str(p.partial_shape) for p in irload.read_model(tmp_path / "new.xml").outputs]
    assert shapes == ["[?,32,2,2]", "[?,16,4,4]"]


def test_preprocessing_and_layouts(irrun, tmp_path: Path) -> None:
    steps = (
        "--embed",
        "type=u8 resize=linear layout=NHWC scale=2 mean=0",
        "--layout",
        "probabilities=NC->CN",
        "--fold",
    )
    outcome = irrun("edit", DIGITS, *steps, "-o", tmp_path / "new.xml", "--json")
    assert outcome.code == OK
    assert [p["shape"] for p in (*outcome.json["inputs"], *outcome.json["outputs"])] == ["[?,?,?,1]", "[10,?]"]
    words = ("--pure-layout", "image=NHWC", "-o", tmp_path / "no.xml")
    assert "Convolution 'conv0' depends on the current layout" in irrun("edit", DIGITS, *words).err


def test_compressed_weights(irrun, tmp_path: Path) -> None:
    outcome = irrun("edit", DIGITS, "--convert", "int4,group=32,all-layers", "-o", tmp_path / "small.xml", "--json")
    assert outcome.code == OK
    assert outcome.json["constant_bytes"] < 0.35 * irrun("inspect", DIGITS, "--json").json["costs"]["constants"]
    assert irload.compile_model(tmp_path / "small.xml")(IMAGE)[0].argmax() == 7
    assert "no weights" not in outcome.err
    again = irrun("edit", tmp_path / "small.xml", "--convert", "int8", "-o", tmp_path / "smaller.xml")
    assert again.code == OK
    assert "--convert int8: no weights are converted; they are compressed already" in again.err


def test_a_shape_alone_is_a_step(irrun, tmp_path: Path) -> None:
    outcome = irrun("edit", DIGITS, "--shape", "[2,1,8,8]", "-o", tmp_path / "two.xml", "--json")
    assert outcome.code == OK
    assert [p["shape"] for p in outcome.json["inputs"]] == ["[2,1,8,8]"]


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        ((), "no step is given"),
        (("--rename", "image"), "--rename 'image' is not of the form OLD=NEW"),
        (("--extract", "pool0"), "--extract 'pool0' is not of the form 'FROM,… -> TO,…'"),
        (("--layout", "image"), "--layout 'image' is not of the form PORT=NHWC"),
        (("--embed", "blur=3"), "--embed 'blur=3': 'blur=3' is not one of input=NAME type=u8"),
        (("--embed", "mean=a"), "'mean=a' is not one of"),
        (("--convert", "int3"), "format must be one of fp16, bf16, int8, int4"),
        (("--convert", "fp16,group=64"), "fp16 takes no settings; group and all-layers are for int4"),
        (("--convert", "int4,group=x"), "'group=x' is not one of group=64, group=none, all-layers"),
        (("--set-batch", "many"), "--set-batch 'many' is not a batch size"),
        (("--reshape", "image"), "--reshape 'image' is not of the form"),
        (("--strip", "everything"), "'everything' is not one of"),
        (("--add-output", "pol0"), "did you mean 'pool0' or 'pool1'?"),
    ],
)
def test_usage(irrun, tmp_path: Path, words, fact: str) -> None:
    outcome = irrun("edit", DIGITS, *words, "-o", tmp_path / "new.xml")
    assert outcome.code == USAGE
    assert fact in outcome.err


def test_files_are_replaced_only_with_force(irrun, tmp_path: Path) -> None:
    words = ("extract", DIGITS, "--to", "pool0", "-o", tmp_path / "a.xml")
    assert [irrun(*words).code, irrun(*words).code, irrun(*words, "--force").code] == [OK, USAGE, OK]
    assert irrun("extract", DIGITS, "-o", tmp_path / "b.xml").code == USAGE

"""irrun diff: exit codes, the text, the document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from irrun.main import FINDINGS, OK, UNREADABLE
from tests.cli.conftest import MODELS

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "diff.schema.json").read_text(encoding="utf-8"))
DIGITS = MODELS / "digits" / "model.xml"


@pytest.fixture
def edited(tmp_path):
    text = DIGITS.read_text(encoding="utf-8").replace('strides="1,1"', 'strides="2,2"', 1)
    (tmp_path / "edited.xml").write_text(text, encoding="utf-8")
    (tmp_path / "edited.bin").write_bytes(DIGITS.with_suffix(".bin").read_bytes())
    return tmp_path / "edited.xml"


def test_the_same(irrun):
    done = irrun("diff", DIGITS, DIGITS)
    assert (done.code, done.out) == (OK, "the same: 23 layers\n")


def test_an_attribute(irrun, edited):
    done = irrun("diff", DIGITS, edited)
    lines = done.out.splitlines()
    assert done.code == FINDINGS
    assert lines[2:5] == ["@@ conv0 (Convolution) @@", "-  strides: 1,1", "+  strides: 2,2"]
    assert lines[-1] == "1 layer changed"
    assert any(line.strip() == "conv0 (Convolution): f32[?,16,8,8] → f32[?,16,4,4]" for line in lines)


def test_shapes_in_one_line(irrun, tmp_path):
    assert irrun("save", DIGITS, tmp_path / "m.xml", "--shape", "[2,1,8,8]").code == OK
    done = irrun("diff", DIGITS, tmp_path / "m.xml")
    assert done.out.splitlines()[-1].startswith("only shapes differ: image [?,1,8,8] → [2,1,8,8]; ")
    assert "conv0" not in done.out
    assert "conv0" in irrun("diff", DIGITS, tmp_path / "m.xml", "--all").out


def test_compression_in_one_line(irrun, tmp_path):
    assert irrun("save", DIGITS, tmp_path / "m.xml", "--fp16").code == OK
    assert (
        "only the precision of weights differs: 7 constants in f16 for f32"
        in irrun("diff", DIGITS, tmp_path / "m.xml").out
    )


def test_the_document(irrun, edited):
    document = irrun("diff", DIGITS, edited, "--json").json
    Draft202012Validator(SCHEMA).validate(document)
    assert document["kind"] == "structure"
    assert document["edits"][0]["changes"][0]["key"] == "strides"
    Draft202012Validator(SCHEMA).validate(irrun("diff", DIGITS, DIGITS, "--json").json)
    Draft202012Validator(SCHEMA).validate(irrun("diff", DIGITS, MODELS / "loop" / "model.xml", "--json").json)


def test_a_file_that_does_not_hold_together_is_compared(irrun, edited):
    text = edited.read_text(encoding="utf-8").replace('kernel="2,2"', 'kernel="99,99"')
    edited.write_text(text, encoding="utf-8")
    done = irrun("diff", DIGITS, edited)
    assert done.code == FINDINGS
    assert "-  kernel: 2,2" in done.out
    assert "note:" in done.err


def test_an_unreadable_model_is_an_error(irrun, tmp_path):
    assert irrun("diff", DIGITS, tmp_path / "none.xml").code == UNREADABLE


def test_missing_weights_are_located_and_may_be_named(irrun, tmp_path):
    alone = tmp_path / "alone.xml"
    alone.write_bytes(DIGITS.read_bytes())
    done = irrun("diff", DIGITS, alone)
    assert done.code == UNREADABLE
    assert f"{alone}:" in done.err
    assert "there is no alone.bin beside the model; name the file with --weights-a FILE or --weights-b FILE" in done.err
    assert irrun("diff", DIGITS, alone, "--weights-b", DIGITS.with_suffix(".bin")).code == OK


def test_renamed_layers_are_counted_after_real_changes(irrun, edited):
    text = edited.read_text(encoding="utf-8").replace('name="dense/bias"', 'name="otherwise"')
    edited.write_text(text, encoding="utf-8")
    done = irrun("diff", DIGITS, edited)
    assert done.out.splitlines()[-1] == "1 layer changed; 1 layer by name alone"
    assert "otherwise" not in done.out
    assert "otherwise" in irrun("diff", DIGITS, edited, "--all").out
    assert irrun("diff", DIGITS, edited, "--ignore", "names").out.splitlines()[-1] == "1 layer changed"

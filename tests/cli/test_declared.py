"""irrun run and irrun batch warn once of ports whose declaration differs from inference; --strict makes it an error."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from irrun.main import FINDINGS, OK
from tests.checks.bases import CONV, Block, net
from tests.cli.conftest import MODELS, irrun_process
from tests.test_declared import FALSE, GROWING, line_of, port

SCHEMAS = MODELS.parent / "schemas"
TWICE = FALSE.edited((port(0, 1, 3, 8, 8, names="x"), port(0, 1, 3, 9, 8, names="x")))


def saved(folder, block: Block, rows: int = 4):
    """The model's path, and the path of an input with `rows` rows if the model accepts any number."""
    text, weights = net(block)
    (folder / "model.xml").write_text(text)
    (folder / "model.bin").write_bytes(weights)
    np.save(folder / "x.npy", np.ones((rows, 3) if block is GROWING else (1, 3, 8, 8), np.float32))
    return folder / "model.xml", folder / "x.npy"


def document(outcome, command):
    schema = json.loads((SCHEMAS / f"{command}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(outcome.json)
    return outcome.json


def warnings(text):
    return [line for line in text.splitlines() if "warning" in line]


def test_run_warns_in_one_line(irrun, tmp_path):
    model, x = saved(tmp_path, TWICE)
    outcome = irrun(model, x)
    assert outcome.code == OK
    assert "[1,4,6,6]" in outcome.out
    (said,) = warnings(outcome.err)
    assert said == (
        "irrun: warning: 2 ports declare other types or shapes than inferred, the first: "
        f"{model}:{line_of(TWICE, '<dim>9</dim>')}: "
        "Parameter 'x' (id 0): output port 0 declares [1,3,9,8], inferred [1,3,8,8]; "
        "'irrun check' explains all, --strict refuses it"
    )
    assert "warning" not in outcome.out
    assert outcome.out == irrun(saved(tmp_path, CONV)[0], x).out


def test_run_does_not_warn_of_valid_files(irrun, tmp_path):
    model, x = saved(tmp_path, CONV)
    outcome = irrun(model, x, "--strict")
    assert (outcome.code, warnings(outcome.err)) == (OK, [])


@pytest.mark.parametrize("words", [(), ("--json",), ("--shape", "[1,3,8,8]"), ("-o", "o.npz")])
def test_strict_refuses_before_anything_runs(irrun, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    model, x = saved(tmp_path, TWICE)
    outcome = irrun(model, x, "--strict", *words)
    assert (outcome.code, outcome.out) == (FINDINGS, "")
    (line,) = outcome.err.splitlines()
    assert line.startswith(
        f"irrun: error: {model}:{line_of(TWICE, '<dim>9</dim>')}: Parameter 'x' (id 0): output port 0 "
    )
    assert line.endswith("; 1 more port differs; --strict refuses the file (DeclaredDiffers)")
    assert not (tmp_path / "o.npz").exists()


def test_a_process_shows_no_traceback(tmp_path):
    model, x = saved(tmp_path, FALSE)
    warned, refused = irrun_process(model, x), irrun_process(model, x, "--strict")
    assert (warned.returncode, refused.returncode) == (OK, FINDINGS)
    assert len(warnings(warned.stderr)) == len(refused.stderr.splitlines()) == 1
    assert "Traceback" not in warned.stderr + refused.stderr


def test_the_report_of_a_run_has_the_warnings(irrun, tmp_path):
    model, x = saved(tmp_path, FALSE)
    report = document(irrun(model, x, "--json"), "run")
    (warning,) = report["warnings"]
    assert warning.endswith("Convolution 'conv' (id 2): output port 2 declares [1,4,7,6], inferred [1,4,6,6]")
    model, x = saved(tmp_path, CONV)
    assert document(irrun(model, x, "--json"), "run")["warnings"] == []


def test_inspect_lists_all(irrun, tmp_path):
    model, _ = saved(tmp_path, TWICE)
    messages = document(irrun("inspect", model, "--json"), "inspect")["warnings"]
    assert [w.partition(" (id ")[0].rpartition(": ")[2] for w in messages] == ["Parameter 'x'", "Convolution 'conv'"]
    assert document(irrun("inspect", model, "--shape", "[1,3,9,9]", "--json"), "inspect")["warnings"] == []


def test_a_dynamic_model_is_compared_with_the_shapes_at_hand(irrun, tmp_path):
    model, x = saved(tmp_path, GROWING)
    assert warnings(irrun(model, x).err) == []
    model, x = saved(tmp_path, GROWING, rows=2)
    outcome = irrun(model, x, "--profile", "--explain", "--json")
    assert document(outcome, "run")["warnings"][0].endswith("output port 1 declares [4,3], inferred [2,3]")
    assert len(warnings(outcome.err)) == 1
    assert "ReLU 'a' (id 1)" in warnings(outcome.err)[0]
    assert irrun(model, x, "--strict").code == FINDINGS


@pytest.mark.parametrize("workers", [1, 2])
def test_batch_warns_in_one_line(irrun, tmp_path, workers):
    model, x = saved(tmp_path, FALSE)
    outcome = irrun("batch", model, x, x, "-o", tmp_path / "out", "--workers", workers, "--json")
    assert outcome.code == OK
    assert len(warnings(outcome.err)) == 1
    assert "1 port declares other types or shapes than inferred: " in outcome.err
    (warning,) = document(outcome, "batch")["warnings"]
    assert "Convolution 'conv' (id 2)" in warning


def test_batch_strict_begins_nothing(irrun, tmp_path):
    model, x = saved(tmp_path, FALSE)
    outcome = irrun("batch", model, x, "-o", tmp_path / "out", "--strict")
    assert (outcome.code, outcome.out, len(outcome.err.splitlines())) == (FINDINGS, "", 1)
    assert "DeclaredDiffers" in outcome.err
    assert not (tmp_path / "out").exists()


def test_batch_reports_warnings_of_its_workers(irrun, tmp_path):
    model, x = saved(tmp_path, GROWING, rows=3)
    words = ("batch", model, x, "--batch-size", 2)
    outcome = irrun(*words, "-o", tmp_path / "out", "--json")
    assert outcome.code == OK
    report = document(outcome, "batch")
    (warning,) = report["warnings"]
    assert "output port 1 declares [4,3], inferred [" in warning
    assert len(warnings(outcome.err)) == 1
    with closing(sqlite3.connect(report["manifest"])) as manifest:
        (kept,) = manifest.execute("SELECT value FROM job WHERE name = 'warnings'").fetchone()
    manifest.close()
    assert json.loads(kept) == report["warnings"]


def test_batch_strict_fails_the_items_whose_shapes_differ(irrun, tmp_path):
    model, x = saved(tmp_path, GROWING, rows=2)
    outcome = irrun("batch", model, x, "-o", tmp_path / "out", "--strict", "--batch-size", 2, "--json")
    assert outcome.code == FINDINGS
    (failure,) = document(outcome, "batch")["failures"]
    assert "output port 1 declares [4,3], inferred [" in failure["reason"]

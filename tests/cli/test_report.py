"""irrun report: the file, what may be asked for, exit codes."""

from __future__ import annotations

import json

from irrun.main import OK, UNREADABLE, USAGE
from tests.cli.conftest import MODELS
from tests.reporting.test_report import Page

DIGITS = MODELS / "digits" / "model.xml"
SEVEN = MODELS / "digits" / "digit_7_0.npy"


def data(file) -> dict:
    return json.loads(Page(file.read_text(encoding="utf-8")).scripts["data"])


def test_a_page_is_written(irrun, tmp_path):
    done = irrun("report", DIGITS, "-o", tmp_path / "r.html")
    assert done.code == OK
    assert "23 layers" in done.out
    found = data(tmp_path / "r.html")
    assert found["model"]["name"] == "digits"
    assert not {"profile", "comparison", "difference"} & set(found)


def test_what_is_asked_for_is_in_it(irrun, tmp_path):
    more = ("--profile", "--compare", "fast", "--diff", DIGITS, "--threads", 1, "--no-constants")
    assert irrun("report", DIGITS, SEVEN, "-o", tmp_path / "r.html", *more).code == OK
    found = data(tmp_path / "r.html")
    assert found["profile"]
    assert found["comparison"]["passed"]
    assert found["difference"]["summary"] == "the same: 23 layers"
    assert not any("statistics" in layer.get("constant", {}) for layer in found["layers"])


def test_shapes_and_random_inputs(irrun, tmp_path):
    assert irrun("report", DIGITS, "--shape", "[1,1,8,8]", "--profile", "-o", tmp_path / "r.html").code == OK
    assert data(tmp_path / "r.html")["memory"]["peak"] > 0
    assert irrun("report", DIGITS, "--profile", "-o", tmp_path / "q.html").code == USAGE


def test_files_are_kept(irrun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert irrun("report", DIGITS).code == OK
    assert (tmp_path / "model.html").exists()
    done = irrun("report", DIGITS)
    assert done.code == USAGE
    assert "--force" in done.err
    assert irrun("report", DIGITS, "--force").code == OK


def test_what_is_no_model(irrun, tmp_path):
    assert irrun("report", tmp_path / "none.xml", "-o", tmp_path / "r.html").code == UNREADABLE

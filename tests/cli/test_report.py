"""irrun report: the file, the accepted options, exit codes."""

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
    contents = data(tmp_path / "r.html")
    assert contents["model"]["name"] == "digits"
    assert not {"profile", "comparison", "difference"} & set(contents)


def test_the_report_contains_the_requested_parts(irrun, tmp_path):
    more = ("--profile", "--compare", "fast", "--diff", DIGITS, "--threads", 1, "--no-constants")
    assert irrun("report", DIGITS, SEVEN, "-o", tmp_path / "r.html", *more).code == OK
    contents = data(tmp_path / "r.html")
    assert contents["profile"]
    assert contents["comparison"]["passed"]
    assert contents["difference"]["summary"] == "the same: 23 layers"
    assert not any("statistics" in layer.get("constant", {}) for layer in contents["layers"])


def test_title_and_counts_match_inspect(irrun, tmp_path):
    nameless = tmp_path / "nameless.xml"
    text = DIGITS.read_text(encoding="utf-8")
    nameless.write_text(text.replace('<net name="digits"', '<net name=""'), encoding="utf-8")
    for k, path in enumerate((DIGITS, MODELS / "loop" / "model.xml", nameless)):
        document = json.loads(irrun("inspect", path, "--json").out)
        assert irrun("report", path, "-o", tmp_path / f"{k}.html").code == OK
        page = Page((tmp_path / f"{k}.html").read_text(encoding="utf-8"))
        contents = json.loads(page.scripts["data"])
        assert contents["model"]["layers"] == len(contents["layers"]) == document["layer_count"]
        costs = document["costs"]
        assert contents["model"]["parameters"] == costs["parameters"]
        assert contents["model"]["macs"] == costs["macs"]
        assert page.title.strip() == (document["name"] or document["model"])


def test_tensors_are_held(irrun, tmp_path):
    assert irrun("report", DIGITS, SEVEN, "--tensor", "relu*", "-o", tmp_path / "r.html").code == OK
    assert [e["name"] for e in data(tmp_path / "r.html")["layers"] if "arrays" in e] == ["relu0", "relu1"]
    assert irrun("report", DIGITS, SEVEN, "--tensor", "nope", "-o", tmp_path / "q.html").code == USAGE


def test_shapes_and_random_inputs(irrun, tmp_path):
    assert irrun("report", DIGITS, "--shape", "[1,1,8,8]", "--profile", "-o", tmp_path / "r.html").code == OK
    assert data(tmp_path / "r.html")["memory"]["peak"] > 0
    assert irrun("report", DIGITS, "--profile", "-o", tmp_path / "q.html").code == USAGE


def test_existing_reports_are_kept(irrun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert irrun("report", DIGITS).code == OK
    assert (tmp_path / "model.html").exists()
    done = irrun("report", DIGITS)
    assert done.code == USAGE
    assert "--force" in done.err
    assert irrun("report", DIGITS, "--force").code == OK


def test_an_unreadable_model_is_an_error(irrun, tmp_path):
    assert irrun("report", tmp_path / "none.xml", "-o", tmp_path / "r.html").code == UNREADABLE

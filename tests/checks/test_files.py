"""Files other than IR, or too large, get an explanation: the detected format and the remedy."""

from __future__ import annotations

import gzip
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.read import read_graph
from tests.checks.bases import BASES, net
from tests.read.legacy import legacy_net

ROOT = Path(__file__).parents[2]
DUMP = (
    '<net name="exec" version="11"><layers><layer id="0" name="x" type="Input">'
    '<data execOrder="0" execTimeMcs="3" originalLayersNames="x"/></layer></layers><edges/></net>'
)
OLD = '<?xml version="1.0"?><net name="m" version="{}" batch="1"><layers></layers></net>'
FOREIGN = [
    *(
        pytest.param(OLD.format(v).encode(), [f"IR version {v}", "does not exist", "10 or 11"], id=f"v{v}")
        for v in (1, 8, 9)
    ),
    pytest.param(OLD.format(12).encode(), ["IR version 12", "newer"], id="v12"),
    pytest.param(OLD.format("x").encode(), ["version 'x'", "10 or 11"], id="no version"),
    pytest.param(b"\x08\x07\x12\x07pytorch\x1a\x03", ["ONNX", "openvino.convert_model"], id="onnx"),
    pytest.param(b"RR_UPCVO" + bytes(64), ["compiled OpenVINO model", ".xml and .bin"], id="blob"),
    pytest.param(DUMP.encode(), ["execution graph", "Use the model that was compiled"], id="execution graph"),
    pytest.param(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", ["Git-LFS", "git lfs pull"], id="lfs"
    ),
    pytest.param(b"<!DOCTYPE html>\n<html><body>404</body></html>", ["HTML page", "download"], id="html"),
    pytest.param(gzip.compress(b"<net/>"), ["gzip", "unpack"], id="gzip"),
    pytest.param(b"PK\x03\x04" + bytes(30), ["ZIP"], id="zip"),
    pytest.param(b"", ["empty"], id="empty"),
    pytest.param(b'{"a": 1}', ["JSON"], id="json"),
    pytest.param("<net/>".encode("utf-16"), ["UTF-16"], id="utf-16"),
    pytest.param(b"<project/>", ["<project>", "<net>"], id="other xml"),
    pytest.param(b'<!DOCTYPE net [<!ENTITY a "b">]><net/>', ["DOCTYPE"], id="doctype"),
    pytest.param(b'<net name="m" version="11"><layers></net>', ["well-formed"], id="syntax"),
]

SYNTAX = [
    (b'<net name="m" version="11">\n <layers>\n  <layer id="0', "AttValue: ' expected", True),
    (b'<net name="m" version="11">\n <layers>\n', "", True),
    (b'<net name="m" version="11">\n <layers/>\n  <edges <</net>', "error parsing attribute name", False),
]
"""A file with a syntax error in line 3; the words of libxml2; whether the error is at the end of the file."""


@pytest.mark.parametrize(("content", "words"), FOREIGN)
def test_files_other_than_ir_are_explained(content, words, tmp_path):
    file = tmp_path / "model.xml"
    file.write_bytes(content)
    report = irload.check(file)
    assert [f.code for f in report.findings] == ["IR001"]
    assert not report.readable
    assert [w for w in words if w not in report.findings[0].message] == []


@pytest.mark.parametrize(("content", "message", "ended"), SYNTAX)
def test_syntax_errors_name_line_and_column(content, message, ended, tmp_path):
    file = tmp_path / "model.xml"
    file.write_bytes(content)
    (finding,) = irload.check(file).findings
    assert finding.line == 3
    assert re.match(f"is not well-formed XML at column [0-9]+: {re.escape(message)}", finding.message)
    assert finding.message.count("column") == 1
    assert finding.message.endswith("; the file may be truncated") == ended


def test_a_sound_file_is_readable(tmp_path):
    text, blob = net(BASES["conv"])
    (tmp_path / "model.xml").write_text(text)
    assert irload.check(tmp_path / "model.xml", blob).readable


def test_weights_that_are_a_pointer_are_explained(tmp_path):
    text, _ = net(BASES["conv"])
    (tmp_path / "model.xml").write_text(text)
    (tmp_path / "model.bin").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    (finding,) = irload.check(tmp_path / "model.xml").findings
    assert finding.code == "IR601"
    assert "git lfs pull" in finding.message


@pytest.mark.parametrize(("layers", "codes"), [(4, ["IR901"]), (5, [])])
def test_limits(layers, codes, tmp_path):
    text, blob = net(BASES["conv"])
    (tmp_path / "model.xml").write_text(text)
    assert [
        f.code for f in irload.check(tmp_path / "model.xml", blob, limits=irload.Limits(layers=layers)).findings
    ] == codes


def test_the_page_of_rules_is_current():
    spec = importlib.util.spec_from_file_location("make_rules", ROOT / "docs" / "make_rules.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    assert module.page() == written, "run python docs/make_rules.py"


@pytest.mark.parametrize(
    ("type", "data", "said"),
    [
        ("Convolution", '<data kernel="3,3" output="4"/>', "weights have 8 bytes"),
        ("Pooling", '<data kernel="3,3,3" strides="1,1,1"/>', "found 3 in kernel, 3 in strides"),
    ],
)
def test_an_invalid_layer_of_an_old_version_is_one_finding(type, data, said, tmp_path):
    text, blob = legacy_net(type, data, [(1, 3, 6, 6)], [(1, 4, 4, 4)], {"weights": np.zeros(2, np.float32)})
    (tmp_path / "m.xml").write_bytes(text)
    findings = irload.check(tmp_path / "m.xml", blob).findings
    assert [(f.code, said in f.message) for f in findings if f.severity == "error"] == [("IR002", True)]
    faults: list[irload.IRError] = []
    assert read_graph(text, blob, faults.append).warnings == []
    assert [said in f.message for f in faults] == [True]


def test_an_unknown_layer_of_an_old_version_is_reported(tmp_path):
    text, _ = legacy_net("Oddity", "", [(1, 3)], [(1, 3)])
    (tmp_path / "m.xml").write_bytes(text)
    assert [f.code for f in irload.check(tmp_path / "m.xml").findings if f.severity == "error"] == ["IR301"]

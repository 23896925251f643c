"""irrun check: its output, the exit codes, and the formats for machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from jsonschema import Draft202012Validator
from lxml import etree

import irload
from irload.checks import all_rules
from irrun.main import FINDINGS, OK, UNREADABLE, USAGE
from tests.checks.bases import net
from tests.checks.file_rows import FILE_ROWS
from tests.checks.graph_rows import GRAPH_ROWS
from tests.checks.seeded_faults import draw, faulty
from tests.cli.conftest import MODELS
from tests.harness.growth import LINEAR, growth
from tests.harness.tiers import tiered

ROOT = Path(__file__).parents[2]
REPORT = Draft202012Validator(json.loads((ROOT / "schemas" / "check-report.schema.json").read_text("utf-8")))
SARIF = Draft202012Validator(json.loads((Path(__file__).parent / "sarif.schema.json").read_text("utf-8")))
BY_CODE = {r.code: r for r in reversed((*FILE_ROWS, *GRAPH_ROWS))}


def write(folder: Path, *codes: str, name: str = "model.xml") -> Path:
    """A file with the faults of these rules."""
    text, blob = net(*(faulty(BY_CODE[c]) for c in codes))
    file = folder / name
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(text, encoding="utf-8")
    file.with_suffix(".bin").write_bytes(blob)
    return file


# -- exit codes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "words", "exit_code"),
    [
        ((), [], OK),
        (("IR401",), [], FINDINGS),
        (("IR701",), [], OK),
        (("IR701",), ["--strict"], FINDINGS),
        (("IR406",), ["--strict"], OK),
        (("IR401",), ["--ignore", "IR4"], OK),
        (("IR401", "IR201"), ["--ignore", "IR401"], FINDINGS),
        (("IR401", "IR201"), ["--select", "IR5,ir6"], OK),
        (("IR401",), ["--select", "IR9x"], USAGE),
        (("IR401",), ["--target", "banana"], USAGE),
        (("IR401",), ["--format", "xml"], USAGE),
    ],
)
def test_exit_codes(irrun, tmp_path, codes, words, exit_code):
    file = write(tmp_path, *codes) if codes else MODELS / "conv_openvino" / "model.xml"
    assert irrun("check", file, *words).code == exit_code


def test_files_that_cannot_be_read_exit_3_and_do_not_hide_the_others(irrun, tmp_path):
    write(tmp_path, "IR401")
    (tmp_path / "a.xml").write_bytes(b"\x1f\x8b\x08gzip")
    outcome = irrun("check", tmp_path)
    assert outcome.code == UNREADABLE
    assert "gzip" in outcome.out
    assert "IR401" in outcome.out
    assert irrun("check", tmp_path / "none.xml").code == UNREADABLE
    assert irrun("check").code == 2


# -- files and folders -----------------------------------------------------------------------------------------------


def test_folders_are_searched_and_other_xml_is_passed_over(irrun, tmp_path):
    write(tmp_path, "IR401", name="deep/er/model.xml")
    write(tmp_path, "IR402", name=".hidden/model.xml")
    (tmp_path / "pom.xml").write_text('<?xml version="1.0"?>\n<project/>')
    (tmp_path / "page.xml").write_text('<?xml version="1.0"?><!DOCTYPE plist SYSTEM "x"><plist/>')
    (tmp_path / "pointer.xml").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    report = irrun("check", tmp_path, "--json").json
    assert [Path(f["file"]).name for f in report["files"]] == ["pointer.xml", "model.xml"]
    shown = irrun("check", tmp_path).out
    assert "2 XML files that are not IR skipped" in shown
    assert "git lfs pull" in shown


def test_a_named_file_is_checked_unless_ir_only(irrun, tmp_path):
    pom = tmp_path / "pom.xml"
    pom.write_text("<project/>")
    assert irrun("check", pom).code == UNREADABLE
    assert irrun("check", pom, "--ir-only").code == OK


def test_weights_are_for_one_file(irrun, tmp_path):
    file = write(tmp_path, "IR401")
    other = file.with_suffix(".bin").rename(tmp_path / "other.bin")
    assert "IR601" in irrun("check", file).out
    assert "IR601" not in irrun("check", file, "--weights", other).out
    assert irrun("check", file, MODELS / "loop" / "model.xml", "--weights", other).code == USAGE


# -- the terminal ----------------------------------------------------------------------------------------------------


def test_the_report_groups_by_file_and_gives_the_reason(irrun, tmp_path):
    file = write(tmp_path, "IR401", "IR701", "IR406")
    lines = [line.rstrip() for line in irrun("check", file).out.splitlines()]
    assert lines[0] == str(file)
    (at,) = [k for k, line in enumerate(lines) if "IR401" in line]
    assert "Convolution 'b0_conv' (id 2): output port 2 declares [1,99,6,6], inferred [1,4,6,6]" in lines[at]
    assert lines[at + 1].strip().startswith("because filters 'b0_w' (id 1) are [4,3,3,3]")
    assert lines[at].index("Convolution") == lines[at + 1].index("because")
    assert "IR406" not in "".join(lines)
    assert lines[-1] == "✗ 1 error and 1 warning in 1 file (1 note, shown by --notes)"
    assert "IR406" in irrun("check", file, "--notes").out


def test_warnings_that_differ_in_layers_are_shown_once(irrun, tmp_path):
    text = (MODELS / "digits" / "model.xml").read_text()
    file = tmp_path / "model.xml"
    file.write_text(text.replace("auto_broadcast=", "broadcast="))
    count = text.count("auto_broadcast=")
    shown = irrun("check", file, "--select", "IR306").out
    assert (shown.count("unknown attribute broadcast"), shown.count("did you mean auto_broadcast?")) == (1, 1)
    assert f"and {count - 1} more like this, in lines" in shown
    assert f"! {count} warnings in 1 file" in shown
    every = irrun("check", file, "--select", "IR306", "--all").out
    assert every.count("unknown attribute broadcast") == count


def test_a_sound_model_is_one_line(irrun):
    assert irrun("check", MODELS / "conv_openvino").out == "✓ no faults in 1 file, 4 layers\n"


def test_text_from_models_is_shown_literally(irrun, tmp_path):
    file = write(tmp_path, "IR401")
    file.write_text(file.read_text().replace('name="conv"', 'name="[red]&#10;x"'))
    assert r"Convolution '[red]\nx' (id 2)" in irrun("check", file).out


# -- for machines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_json_is_valid_by_its_schema(irrun, tmp_path, seed):
    _, text, blob = draw(seed)
    (tmp_path / "model.xml").write_text(text)
    (tmp_path / "model.bin").write_bytes(blob)
    (tmp_path / "broken.xml").write_text("<net version='7'>")
    report = irrun("check", tmp_path, "--format", "json").json
    REPORT.validate(report)
    assert [f["readable"] for f in report["files"]] == [False, True]
    assert report["errors"] + report["warnings"] + report["notes"] == sum(len(f["findings"]) for f in report["files"])


@pytest.mark.parametrize("seed", range(5))
def test_sarif_is_valid_by_the_standard(irrun, tmp_path, seed):
    _, text, blob = draw(seed)
    file = tmp_path / "a model.xml"
    file.write_text(text)
    file.with_suffix(".bin").write_bytes(blob)
    log = irrun("check", file, "--format", "sarif").json
    SARIF.validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [r["id"] for r in rules] == [r.code for r in all_rules()]
    assert run["results"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        (place,) = result["locations"]
        artifact = place["physicalLocation"]["artifactLocation"]
        assert run["artifacts"][artifact["index"]]["location"]["uri"] == artifact["uri"]
        assert artifact["uri"].endswith(quote(file.name))


def test_reports_are_written_whole_and_not_over_a_file(irrun, tmp_path):
    file, out = write(tmp_path, "IR401"), tmp_path / "out.sarif"
    shown = irrun("check", file, "--format", "sarif", "-o", out)
    assert "IR401" in shown.out
    SARIF.validate(json.loads(out.read_text("utf-8")))
    for form in ("text", "junit", "github", "json", "sarif", "text"):  # each overrides the previous one
        assert irrun("check", file, "--format", form, "-o", out).code == FINDINGS
    assert out.read_text("utf-8").splitlines()[-1] == "✗ 1 error in 1 file"
    assert irrun("check", MODELS / "conv_openvino", "-o", out).code == OK
    assert irrun("check", file, "-o", out).code == FINDINGS
    out.write_text("precious")
    outcome = irrun("check", file, "-o", out)
    assert outcome.code == USAGE
    assert "is not a report of irrun check; --force replaces it" in outcome.err
    assert irrun("check", file, "-o", file).code == USAGE
    assert irrun("check", file, "-o", out, "--force").code == FINDINGS


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("r.sarif", '{\n  "$schema"'),
        ("r.JSON", '{\n  "tool": "irload"'),
        ("r.xml", "<?xml"),
        ("r.txt", ""),
    ],
)
def test_the_suffix_of_the_file_chooses_the_format(irrun, tmp_path, name, start):
    file, out = write(tmp_path, "IR401"), tmp_path / name
    assert irrun("check", file, "-o", out).code == FINDINGS
    text = out.read_text("utf-8")
    assert text.startswith(start)
    assert text.rstrip().endswith("1 error in 1 file") == (name == "r.txt")
    assert irrun("check", file, "-o", out, "--format", "text").code == FINDINGS
    assert out.read_text("utf-8").rstrip().endswith("1 error in 1 file")


HOSTILE = "conv\n::error file=x::forged\x9b31m\u202egnp"


def test_annotations_for_github(irrun, tmp_path):
    file = write(tmp_path, "IR401", "IR701", "IR406", name="a,b:100%.xml")
    name = "".join(f"&#{ord(c)};" for c in HOSTILE)
    file.write_text(file.read_text("utf-8").replace('name="b0_conv"', f'name="{name}"'), encoding="utf-8")
    outcome = irrun("check", file, "--format", "github")
    assert outcome.code == FINDINGS
    lines = outcome.out.splitlines()
    assert sum(line.startswith("::error ") for line in lines) == 1
    (error,) = [line for line in lines if line.startswith("::error ")]
    assert f"file={tmp_path.as_posix()}/a%2Cb%3A100%25.xml,line=" in error
    assert ",title=IR401::Convolution 'conv\\n::error file=x::forged\\x9b31m\\u202egnp' (id 2): output port 2" in error
    assert any(line.startswith("::warning ") for line in lines)
    assert not any(line.startswith("::notice file=") for line in lines)
    assert lines[-1] == "::notice title=irrun check::1 error, 1 warning, 1 note, 0 suppressed in 1 file"
    assert any(
        line.startswith("::notice file=")
        for line in irrun("check", file, "--format", "github", "--notes").out.splitlines()
    )


def test_junit(irrun, tmp_path):
    write(tmp_path, "IR401", "IR701", name="a&b.xml")
    (tmp_path / "sound.xml").write_text((MODELS / "conv_openvino" / "model.xml").read_text("utf-8"))
    (tmp_path / "sound.bin").write_bytes((MODELS / "conv_openvino" / "model.bin").read_bytes())
    root = etree.fromstring(irrun("check", tmp_path, "--format", "junit", "--ignore", "IR7").out.encode())
    assert root.get("failures") == "1"
    first, second = root
    assert (first.get("name"), first.get("tests"), first.get("skipped")) == (str(tmp_path / "a&b.xml"), "2", "1")
    assert [case[0].tag for case in first] == ["failure", "skipped"]
    assert "output port 2 declares [1,99,6,6]" in first[0][0].get("message")
    assert [case.get("name") for case in second] == ["no faults"]


def test_no_files_to_check_is_an_error(irrun, tmp_path):
    outcome = irrun("check", tmp_path)
    assert outcome.code == UNREADABLE
    assert "no IR files found" in outcome.out
    assert irrun("check", tmp_path, "--ir-only").code == OK  # hooks read the committed content


# -- rules -----------------------------------------------------------------------------------------------------------


def test_rules_are_listed_and_explained(irrun):
    listed = irrun("check", "--rules").out
    assert all(rule.code in listed and rule.title in listed for rule in all_rules())
    shown = irrun("check", "--explain", "ir401").out
    assert "declared dims differ from the operation's" in shown
    assert "[1,99,6,6]" in shown
    assert irrun("check", "--explain", "IR4").code == USAGE


@pytest.mark.parametrize("rule", all_rules(), ids=lambda r: r.code)
def test_rules_have_a_description_and_an_example(rule):
    assert rule.text
    assert len(rule.example) > 15
    assert not rule.title.endswith(".")
    assert rule.code[2] in "012345689" or rule.category == "hygiene"


# -- the library -----------------------------------------------------------------------------------------------------


def test_findings_contain_location_and_reason(tmp_path):
    file = write(tmp_path, "IR401")
    report = irload.check(file)
    (finding,) = report.findings
    assert isinstance(report, irload.Report)
    assert isinstance(finding, irload.Finding)
    assert (finding.code, finding.severity, finding.layer_id, finding.layer_name) == ("IR401", "error", 2, "conv")
    assert (finding.port, finding.file) == ("output port 2", str(file))
    assert finding.cause.startswith("filters 'w' (id 1) are [4,3,3,3]")
    assert '<port id="2"' in file.read_text().splitlines()[(finding.line or 0) - 1]
    assert not report.ok()
    with pytest.raises(
        ValueError, match=r"^'2021' is not an OpenVINO release. A release is YEAR.NUMBER; .*: 2020.1, .*, 2026.1$"
    ):
        irload.check(file, target="2021")
    with pytest.raises(FileNotFoundError):
        irload.check(tmp_path / "none.xml")


def test_bodies_are_named(tmp_path):
    row = next(r for r in GRAPH_ROWS if r.code == "IR401" and r.base == "tensor_iterator")
    text, blob = net(faulty(row))
    (tmp_path / "m.xml").write_text(text)
    (finding,) = irload.check(tmp_path / "m.xml", blob).findings
    assert (finding.body, finding.layer) == ("ti/body", "Parameter 'slice' (id 0) in ti/body")


def claiming(folder: Path, count: int) -> Callable[[], object]:
    """Check a file of that many layers, each with a wrong declaration that follows from the first."""
    port = '<port id="{}" precision="FP32"><dim>1</dim><dim>4</dim></port>'
    input_text, port_text = f"<input>{port.format(0)}</input>", f"<output>{port.format(1)}</output>"
    head = '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,3" element_type="f32"/>'
    layers = f"{head}<output>{port.format(0)}</output></layer>"
    for k in range(1, count):
        layers += f'<layer id="{k}" name="r{k}" type="ReLU" version="opset1">{input_text}{port_text}</layer>'
    layers += f'<layer id="{count}" name="y" type="Result" version="opset1">{input_text}</layer>'
    edges = "".join(
        f'<edge from-layer="{k}" from-port="{min(k, 1)}" to-layer="{k + 1}" to-port="0"/>' for k in range(count)
    )
    file = folder / f"{count}.xml"
    file.write_text(f'<net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>')

    def task() -> None:
        findings: Any = [f for f in irload.check(file).findings if f.severity == "error"]
        assert [(f.code, f.layer_id) for f in findings] == [("IR401", 0)]

    return task


def test_a_large_file_takes_no_more_than_its_share(tmp_path):
    assert growth(lambda count: claiming(tmp_path, count), tiered(6_000, 10_000)) < LINEAR

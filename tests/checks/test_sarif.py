"""The parts of a finding in SARIF logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from irload.checks import Finding, Report, all_rules
from irload.checks.report import Suppressed, Suppression
from irload.checks.sarif import to_sarif
from tests.checks.test_reports import SARIF

RULES = list(all_rules())
PLACED = Finding(
    *("IR401", "error", "declares [1]", "because", "a b/m.xml", 12, 3, "conv", "Convolution", "output port 2"),
)
ABOUT_THE_FILE = Finding("IR606", "warning", "has 100 bytes more", file="a b/m.xml")


def results(*findings: Finding, file: str = "a b/m.xml", suppressed: tuple[Suppressed, ...] = ()):
    report = Report(file, list(findings), suppressed=list(suppressed))
    log = to_sarif([Report("first.xml"), report], RULES, "1.2.0")
    SARIF.validate(log)
    return log["runs"][0]["results"]


def test_parts_of_a_result():
    placed, about = results(PLACED, ABOUT_THE_FILE)
    artifact = {"artifactLocation": {"uri": "a%20b/m.xml", "index": 1}}
    name = "Convolution 'conv' (id 3)"
    assert placed["message"] == {"text": f"{name}: declares [1] (because)"}
    assert placed["locations"] == [
        {
            "physicalLocation": {**artifact, "region": {"startLine": 12}},
            "logicalLocations": [{"name": "conv", "kind": "element", "fullyQualifiedName": name}],
        }
    ]
    assert (placed["level"], RULES[placed["ruleIndex"]].code) == ("error", "IR401")
    assert about["message"] == {"text": "has 100 bytes more"}
    assert about["locations"] == [{"physicalLocation": artifact}]


def test_a_layer_without_a_name_has_its_id():
    (result,) = results(replace(PLACED, layer_name="", layer_id=0))
    assert result["locations"][0]["logicalLocations"][0]["name"] == "0"


def test_fingerprints_depend_on_the_finding_and_not_on_its_line():
    def fingerprint(finding: Finding) -> str:
        return results(finding)[0]["partialFingerprints"]["irloadFinding/v1"]

    assert len(fingerprint(PLACED)) == 32
    assert fingerprint(PLACED) == fingerprint(replace(PLACED, line=99, layer_id=7))
    changed = [{"code": "IR402"}, {"layer_name": "other"}, {"port": None}, {"message": "declares [2]"}]
    assert len({fingerprint(replace(PLACED, **change)) for change in changed} | {fingerprint(PLACED)}) == 5


def test_files_are_uris(tmp_path: Path):
    (result,) = results(replace(PLACED, file=str(tmp_path / "a b.xml")), file=str(tmp_path / "a b.xml"))
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == (tmp_path / "a b.xml").as_uri()


def test_suppressions_name_their_source_and_reason():
    by = (Suppression("ignore"), Suppression("exemption", "known"))
    result = results(suppressed=tuple(Suppressed(PLACED, b) for b in by))
    assert [r["suppressions"] for r in result] == [
        [{"kind": "external", "justification": text}] for text in ("ignore", "exemption: known")
    ]
    log = to_sarif([Report("m.xml")], RULES, "1.2.0", by[1:])
    assert "exemption suppresses nothing" in str(log["runs"][0]["invocations"])
    assert "invocations" not in to_sarif([Report("m.xml")], RULES, "1.2.0")["runs"][0]


def test_rules_have_their_explanation():
    rules = to_sarif([], RULES, "1.2.0")["runs"][0]["tool"]["driver"]["rules"]
    (rule,) = [r for r in rules if r["id"] == "IR506"]
    assert rule["name"] == "AssignWithoutReadvalue"
    assert rule["fullDescription"]["text"].startswith("No layer reads the variable that an Assign writes")
    assert "Example:" not in rule["fullDescription"]["text"]
    assert rule["help"]["text"].startswith("Example: an Assign with")

"""Files that contradict themselves, or refer to missing elements, are rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

import irload

LOOP = Path(__file__).parents[2] / "models" / "loop"
BACK_EDGE = '<edge from-layer="2" to-layer="0"/>'
INPUT = '<input external_port_id="2" internal_layer_id="0"/>'


def loop(old: str, new: str) -> bytes:
    text = (LOOP / "model.xml").read_text("utf-8")
    assert old in text
    return text.replace(old, new, 1).encode()


@pytest.mark.parametrize("version", ["opset", "opset0", "opset01", "Opset1", "opset 1"])
def test_a_version_is_opset_and_a_number(version: str, tmp_path: Path) -> None:
    text = loop('type="Add" version="opset1"', f'type="Add" version="{version}"')
    with pytest.raises(irload.UnknownOperation, match="Add"):
        irload.compile_model(irload.read_model(text, LOOP / "model.bin"))
    (tmp_path / "m.xml").write_bytes(text)
    report = irload.check(tmp_path / "m.xml", LOOP / "model.bin")
    assert [f.code for f in report.findings if f.severity == "error"] == ["IR302"]
    assert "irload supports it in opset1" in report.findings[0].message


@pytest.mark.parametrize(
    ("old", "more", "words"),
    [
        (BACK_EDGE, '<edge from-layer="4" to-layer="0"/>', "back edges from layers 2 and 4 both feed layer 0"),
        (INPUT, '<input external_port_id="0" internal_layer_id="0"/>', "input ports 2 and 0 both feed layer 0"),
    ],
)
def test_a_body_parameter_has_one_source(old: str, more: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(irload.ReadError, match=words):
        irload.read_model(loop(old, old + more), LOOP / "model.bin")
    irload.read_model(loop(old, old * 2), LOOP / "model.bin")  # OpenVINO accepts an identical duplicate
    for text, severity in ((old + more, "error"), (old * 2, "warning")):
        (tmp_path / "m.xml").write_bytes(loop(old, text))
        (finding,) = irload.check(tmp_path / "m.xml", LOOP / "model.bin").findings
        assert (finding.code, finding.severity) == ("IR509", severity)

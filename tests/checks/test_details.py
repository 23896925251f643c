"""Details of rules and reports that a single row cannot show: thresholds, several findings, their order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irload
from irload.checks import Finding
from irload.checks.config import Config, Exemption
from irload.checks.releases import RELEASES, newest_opset, parse_release, release_of
from irload.checks.report import Report, Suppressed, Suppression, reports_to_dict
from irload.checks.rule import Hit, file_rule
from irload.checks.search import find_models
from models import ir
from tests.checks.bases import BASES, Block, edges, layer, net
from tests.checks.graph_rows import V1
from tests.checks.table import INTO_RELU, SIX, TO_RESULT, TWIN, TWIN_FED, TWIN_OUT, extra
from tests.checks.test_reports import write


def checked(folder: Path, *blocks: Block, version: str = "11", **options: object) -> list[Finding]:
    """The findings about a file that consists of the blocks."""
    text, blob = net(*blocks, version=version)
    (folder / "model.xml").write_text(text, encoding="utf-8")
    return irload.check(folder / "model.xml", blob, **options).findings


def saved(folder: Path, graph: ir.Graph) -> Path:
    ir.save(graph, folder, "n")
    return folder / "model.xml"


# -- reports -----------------------------------------------------------------------------------------------------------


def test_findings_are_in_the_order_of_lines(tmp_path):
    file = write(tmp_path, "IR401", "IR701", "IR201", "IR606", "IR406")
    report = irload.check(file)
    lines = [f.line for f in report.findings]
    assert lines[0] is None, "findings about the file come first"
    assert lines[1:] == sorted(lines[1:])
    ignored = irload.check(file, ignore=["IR"])
    assert ([s.finding for s in ignored.suppressed], ignored.findings) == (report.findings, [])
    assert {s.by.source for s in ignored.suppressed} == {"ignore"}


@pytest.mark.parametrize("codes", [["IR999"], ["IR401", "ir4"], [""], "IR401"])
def test_codes_of_no_rule_are_refused(tmp_path, codes):
    file = write(tmp_path, "IR401")
    for option in ({"select": codes}, {"ignore": codes}):
        with pytest.raises(irload.InputInvalid, match=r"no rule has the code '.*'; irrun check --rules lists"):
            irload.check(file, **option)


def test_the_summary_of_a_report(tmp_path):
    file = write(tmp_path, "IR501")
    report = irload.check(file)
    assert report.layers == 10, "those of the body included"
    assert 0 < report.seconds < 60
    entry = Report("m.xml", report.findings, seconds=0.123456).to_dict()
    assert (entry["seconds"], entry["errors"], entry["warnings"], entry["readable"]) == (0.1235, 1, 0, True)
    assert reports_to_dict([irload.check(file, ignore=["IR5"])] * 2, "1")["suppressed"] == 2
    warned = irload.check(write(tmp_path, "IR701", "IR406"))
    assert (warned.errors, warned.warnings, warned.notes) == (0, 1, 1)
    assert (warned.ok(), warned.ok(strict=True)) == (True, False)
    document = reports_to_dict([report, warned, warned], "1")
    assert (document["errors"], document["warnings"], document["notes"]) == (1, 2, 2)
    assert document["suppressed"] == 0


def test_findings_cannot_be_changed(tmp_path):
    (finding,) = irload.check(write(tmp_path, "IR401")).findings
    with pytest.raises(AttributeError):
        finding.code = "IR402"
    assert not hasattr(finding, "__dict__"), "a file may cause millions of them"
    for record in (Config(), Exemption("IR4"), Suppression("ignore"), Suppressed(finding, Suppression("ignore"))):
        with pytest.raises(AttributeError):
            record.__setattr__(next(iter(record.__match_args__)), "x")


def test_the_last_rule_reports_nothing_that_another_one_covers(tmp_path):
    for code in ("IR304", "IR305", "IR408", "IR601"):
        file = write(tmp_path, code)
        if code == "IR601":
            file.with_suffix(".bin").unlink()
        assert irload.check(file, select=["IR310"]).findings == []
    assert irload.check(write(tmp_path, "IR310"), select=["IR310", "IR9"]).errors == 1


def test_two_rules_cannot_have_one_code():
    with pytest.raises(TypeError, match="two rules have the code IR310"):
        file_rule("IR310", "error", "again")(lambda subject: [Hit(None, "x")])


def test_models_among_files(tmp_path):
    text, _ = net(BASES["dynamic"])
    names = ("b/x.xml", "b/y.XML", "a.xml", ".git/z.xml", "b/.c/z.xml", "b/x.bin")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "b/pom.xml").write_text("<project/>")
    (tmp_path / "b/other.xml").write_text('<?xml version="1.0"?><!DOCTYPE x><netlist/>')
    (tmp_path / "b/plist.xml").write_text('<?xml version="1.0"?><!DOCTYPE x><plist/>')
    models, passed = find_models([tmp_path, tmp_path / "a.xml", tmp_path / "b/pom.xml"])
    assert [str(p.relative_to(tmp_path)) for p in models] == ["a.xml", "b/other.xml", "b/x.xml", "b/y.XML", "b/pom.xml"]
    assert passed == 2
    assert find_models([tmp_path / "b/pom.xml", tmp_path / "a.xml"], only_ir=True) == ([tmp_path / "a.xml"], 1)


# -- releases ----------------------------------------------------------------------------------------------------------

OPSETS = """2020.1 1, 2020.2 2, 2020.3 2, 2020.4 3, 2021.1 4, 2021.2 5, 2021.3 6, 2021.4 7, 2022.0 7, 2022.1 8,
2022.2 9, 2022.3 10, 2023.0 11, 2023.1 12, 2023.2 13, 2023.3 13, 2024.0 14, 2024.4 14, 2024.5 15, 2024.6 15,
2025.0 15, 2025.1 15, 2025.2 16, 2025.4 16, 2026.0 16, 2026.1 17"""


@pytest.mark.parametrize(("release", "opset"), [entry.split() for entry in OPSETS.replace("\n", " ").split(", ")])
def test_opsets_of_releases(release, opset):
    parsed = parse_release(release)
    assert parsed is not None
    assert newest_opset(parsed) == int(opset)
    assert (parsed in RELEASES) == (release_of(int(opset)) == release)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        *(("2023.0", (2023, 0)), ("2023.10.1", (2023, 10)), ("2020.1", (2020, 1)), ("2019.3", None), ("2023", None)),
        *(("2023.x", None), ("x.1", None), ("", None), ("2023.", None)),
    ],
)
def test_names_of_releases(text, parsed):
    assert parse_release(text) == parsed


def test_older_files_are_for_older_releases(tmp_path):
    assert newest_opset((2019, 3)) == 0
    assert [f.code for f in checked(tmp_path, BASES["conv"], target="2021.4")] == ["IR802"]
    assert "IR802" not in {f.code for f in checked(tmp_path, BASES["conv"], version="10", target="2021.4")}


# -- graphs ------------------------------------------------------------------------------------------------------------


def test_each_circle_is_reported_once(tmp_path):
    """Two cycles of two layers each; the layers before and after a cycle are not part of it."""
    block = BASES["conv"].edited(
        *(extra(k, f"r{k}", "ReLU", [SIX], [SIX]) for k in (9, 10, 11, 12, 13)),
        *(extra(k, f"add{k}", "Add", [SIX, SIX], [SIX], 'auto_broadcast="numpy"') for k in (20, 21)),
        extra(30, "end", "Result", [SIX], names=["z"]),
        (INTO_RELU, INTO_RELU + edges((2, 2, 20, 0), (9, 1, 20, 1), (20, 2, 9, 0), (20, 2, 21, 0), (10, 1, 21, 1))),
        (TO_RESULT, TO_RESULT + edges((21, 2, 10, 0), (21, 2, 11, 0), (11, 1, 30, 0))),
    )
    block = block.edited(*((layer(k, f"r{k}", "ReLU", [SIX], [SIX]), "") for k in (12, 13)))
    findings = [f for f in checked(tmp_path, block) if f.severity == "error"]
    assert [f.code for f in findings] == ["IR205", "IR205"]
    assert {f.cause for f in findings} == {"'add20' → 'r9'", "'add21' → 'r10'"}
    assert {f.message for f in findings} == {"is on a cycle of 2 layers"}


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [('type="ReLU"', 'type="FooOp"', "IR301"), (V1, '"Gelu" version="opset1"', "IR302")],
)
def test_operations_that_no_output_needs_are_a_warning(tmp_path, old, new, code):
    twin = (TWIN[0], TWIN[1].replace(old, new))
    findings = {f.code: f.severity for f in checked(tmp_path, BASES["conv"].edited(twin, TWIN_FED))}
    assert findings == {code: "warning", "IR701": "warning"}
    findings = checked(tmp_path, BASES["conv"].edited(*TWIN_OUT, twin, TWIN_FED))
    assert [(f.code, f.severity) for f in findings] == [(code, "error")]


@pytest.mark.parametrize(("count", "reported"), [(0, True), (5, True), (6, False)])
def test_sizes_are_followed_over_a_few_layers(tmp_path, count, reported):
    graph = ir.Graph()
    x = graph.parameter("x", "f32", (2, 6))
    (sizes,) = graph.layer("ShapeOf", [x], [("i64", (2,))], version="opset3", attributes={"output_type": "i64"})
    for _ in range(count):
        one = graph.constant(np.ones(2, np.int64))
        (sizes,) = graph.layer("Multiply", [sizes, one], [("i64", (2,))], attributes={"auto_broadcast": "numpy"})
    (wide,) = graph.layer("Convert", [sizes], [("f32", (2,))], attributes={"destination_type": "f32"})
    graph.result(wide)
    assert ("IR707" in {f.code for f in irload.check(saved(tmp_path, graph)).findings}) == reported


def test_a_name_on_two_ports_of_one_layer_and_on_three_layers(tmp_path):
    graph = ir.Graph()
    x = graph.parameter("x", "f32", (4,))
    axis = graph.constant(0)
    parts = graph.layer("Split", [x, axis], [("f32", (2,))] * 2, names=["a", "a"], attributes={"num_splits": 2})
    for part in parts:
        (y,) = graph.layer("ReLU", [part], [("f32", (2,))], names=["x"])
        graph.result(y)
    findings = [f for f in irload.check(saved(tmp_path, graph)).findings if f.code == "IR703"]
    assert [(f.layer_type, f.port) for f in findings] == [("ReLU", "output port 1")] * 2


def test_parts_of_a_split_are_often_unused(tmp_path):
    graph = ir.Graph()
    x, axis = graph.parameter("x", "f32", (4,)), graph.constant(0)
    first, _ = graph.layer("Split", [x, axis], [("f32", (2,))] * 2, attributes={"num_splits": 2})
    graph.result(first)
    assert "IR702" not in {f.code for f in irload.check(saved(tmp_path, graph)).findings}


@pytest.mark.parametrize(
    ("rows", "cause"),
    [("1..4", "shape 'more' (id 3) has known bounds"), (4, "shape 'more' (id 3) holds [5, 4]")],
)
def test_values_and_bounds_are_causes(tmp_path, rows, cause):
    """A Reshape to the dims of an input plus one."""
    graph = ir.Graph()
    x = graph.parameter("x", "f32", (rows, 3))
    (sizes,) = graph.layer("ShapeOf", [x], [("i64", (2,))], version="opset3", attributes={"output_type": "i64"})
    one = graph.constant(1)
    (more,) = graph.layer("Add", [sizes, one], [("i64", (2,))], name="more", attributes={"auto_broadcast": "numpy"})
    data = graph.parameter("data", "f32", ("?",))
    (out,) = graph.layer("Reshape", [data, more], [("f32", (9, 4))], attributes={"special_zero": "false"})
    graph.result(out)
    (findings,) = [f for f in irload.check(saved(tmp_path, graph)).findings if f.code == "IR401"]
    assert findings.cause.split("; ")[0] == cause

"""Each rule on a file that violates only it, and on a near miss."""

from __future__ import annotations

import pytest

import irload
from irload.checks import all_rules
from models import ir
from tests.checks.bases import BASES
from tests.checks.findings import ROWS, findings, recorded, shown

ELSEWHERE = {"IR001", "IR010", "IR011", "IR012", "IR013", "IR901"}
"""Rules about unreadable files and about folders: tests/checks/test_files.py, tests/text/test_folders.py."""


def test_every_rule_has_a_row():
    assert {r.code for r in ROWS.values()} | ELSEWHERE == {r.code for r in all_rules()}
    assert recorded().keys() == ROWS.keys()


@pytest.mark.parametrize("base", BASES)
def test_bases_are_sound(base, tmp_path):
    assert findings(tmp_path, base, (), lambda b: b, None) == []


@pytest.mark.parametrize("row", ROWS)
def test_trigger(row, tmp_path):
    bad = ROWS[row]
    hits = findings(tmp_path, bad.base, bad.bad, bad.weights, bad.options)
    assert [f.code for f in hits] == [bad.code], hits
    assert shown(hits[0]) == recorded()[row], "python -m tests.generated findings"


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_near_miss(row, tmp_path):
    hits = findings(tmp_path, row.base, row.near, row.near_weights, row.near_options)
    assert row.code not in {f.code for f in hits}
    assert [f for f in hits if f.severity == "error"] == []


def test_outputs_whose_number_depends_on_values_are_not_counted(tmp_path):
    graph = ir.Graph()
    data, lengths = graph.parameter("data", "f32", (2, 6)), graph.parameter("lengths", "i64", ("?",))
    parts = graph.layer("VariadicSplit", [data, graph.constant(1), lengths], [("f32", (2, "?"))] * 2)
    for part in parts:
        graph.result(part)
    file = tmp_path / "model.xml"
    file.write_text(f'<net name="n" version="11">{graph.text()}</net>', encoding="utf-8")
    file.with_suffix(".bin").write_bytes(bytes(graph.blob))
    assert "IR410" not in {f.code for f in irload.check(file).findings}

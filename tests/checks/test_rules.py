"""Each rule on a file that violates only it, and on a near miss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import irload
from irload.checks import Finding, all_rules
from models import ir
from tests.checks.bases import BASES, net
from tests.checks.file_rows import FILE_ROWS
from tests.checks.graph_rows import GRAPH_ROWS
from tests.checks.table import Changes, Row, Weights

ROWS = [*GRAPH_ROWS, *FILE_ROWS]
ELSEWHERE = {"IR001", "IR010", "IR011", "IR012", "IR013", "IR901"}
"""Rules about unreadable files and about folders: tests/checks/test_files.py, tests/text/test_folders.py."""


def findings(
    folder: Path, base: str, changes: Changes, weights: Weights, options: dict[str, Any] | None
) -> list[Finding]:
    text, blob = net(BASES[base].edited(*changes))
    file = folder / "model.xml"
    file.write_text(text, encoding="utf-8")
    changed = weights(blob)
    if changed is not None:
        file.with_suffix(".bin").write_bytes(changed)
    return irload.check(file, **(options or {})).findings


def named(rows: list[Row]) -> list[Any]:
    return [pytest.param(r, id=f"{r.code}-{k}") for k, r in enumerate(rows)]


def test_every_rule_has_a_row():
    assert {r.code for r in ROWS} | ELSEWHERE == {r.code for r in all_rules()}


@pytest.mark.parametrize("base", BASES)
def test_bases_are_sound(base, tmp_path):
    assert findings(tmp_path, base, (), lambda b: b, None) == []


@pytest.mark.parametrize("row", named(ROWS))
def test_trigger(row, tmp_path):
    found = findings(tmp_path, row.base, row.bad, row.weights, row.options)
    assert [f.code for f in found] == [row.code], found
    assert found[0].message


@pytest.mark.parametrize("row", named(ROWS))
def test_near_miss(row, tmp_path):
    found = findings(tmp_path, row.base, row.near, row.near_weights, row.near_options)
    assert row.code not in {f.code for f in found}
    assert [f for f in found if f.severity == "error"] == []


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

"""All faults in one report: files with several unrelated ones, and one wrong declaration at a time in valid models."""

from __future__ import annotations

from pathlib import Path

import pytest

import irload
from tests import seeded_edits
from tests.checks.bases import BLOCK
from tests.checks.seeded_faults import draw

MODELS = sorted((Path(__file__).parents[2] / "models").glob("*/model.xml"))


@pytest.mark.parametrize("seed", range(60))
def test_unrelated_faults_are_all_reported(seed, tmp_path):
    rows, text, blob = draw(seed)
    file = tmp_path / "model.xml"
    file.write_text(text, encoding="utf-8")
    findings = irload.check(file, blob).findings
    assert sorted(f.code for f in findings) == sorted(r.code for r in rows), findings
    for k, row in enumerate(rows):  # each finding is in the block with its fault
        alone = next(f for f in findings if f.code == row.code)
        if alone.layer_id is not None and not alone.body:
            assert alone.layer_id // BLOCK == k, alone


def test_one_wrong_declaration_is_reported_exactly_once():
    assert len(MODELS) >= 8
    assert seeded_edits.run(MODELS, 120, 1) == []


@pytest.mark.parametrize("file", MODELS, ids=lambda f: f.parent.name)
def test_sound_models_have_no_faults(file):
    report = irload.check(file)
    assert report.ok(strict=True), report.findings

"""docs/operations.md agrees with the registry and with the recorded references of each row."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import pytest

from tests.harness.case import GENERATORS
from tests.ops.families import load_families
from tests.opset_tables import rows
from tests.oracles import CASES, COLUMNS, FILE

DOCS = Path(__file__).parents[1] / "docs"
load_families()


def test_the_page_is_current() -> None:
    spec = importlib.util.spec_from_file_location("make_operations", DOCS / "make_operations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (DOCS / "operations.md").read_text(encoding="utf-8")
    assert module.page() == written, "run python docs/make_operations.py"


def test_every_row_is_on_the_page() -> None:
    text = (DOCS / "operations.md").read_text(encoding="utf-8")
    assert [row for row in rows() if f"\n### {row[0]}, {row[1]}\n" not in text] == []
    assert "\n### Pad, ngraph\n" in text
    assert "\n### Convolution, onednn\n" in text


def test_every_row_with_cases_has_an_oracle() -> None:
    with open(FILE, encoding="utf-8") as file:
        lines = {(line["type"], line["version"]): line for line in csv.DictReader(file)}
    assert set(lines) == set(GENERATORS), "run python -m tests.oracles"
    for row, line in lines.items():
        assert sum(int(line[c]) for c in COLUMNS) == CASES, row


@pytest.mark.parametrize("word", ["TODO", "None", "<function", "lambda:"])
def test_the_page_contains_no_unescaped_text(word: str) -> None:
    assert word not in (DOCS / "operations.md").read_text(encoding="utf-8")

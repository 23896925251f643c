"""`make generated` covers every file that names a command as its writer, and each has a test."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.generated import ROOT, TABLE

WRITTEN = re.compile(r"[Ww]ritten by `?python")
FOLDERS = ("irload", "cli", "docs", "schemas", "tests/data")


def test_every_written_file_is_in_the_table():
    said = {
        file.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for file in (ROOT / folder).rglob("*")
        if file.suffix in {".py", ".md", ".csv", ".rng", ".json"} and not file.name.startswith("make")
        if WRITTEN.search(file.read_text(encoding="utf-8"))
    }
    assert said <= {file for entry in TABLE.values() for file in entry.files}
    assert "docs/rules.md" in said


@pytest.mark.parametrize("name", TABLE)
def test_entries_name_existing_files(name: str):
    entry = TABLE[name]
    assert [file for file in (*entry.files, entry.test) if not (ROOT / file).exists()] == []


def test_unknown_names_are_rejected():
    done = subprocess.run(
        [sys.executable, "-m", "tests.generated", "nothing"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "there are index, oracles" in done.stderr

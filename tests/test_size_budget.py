"""Files with one purpose: at most 400 lines each, short enough to read at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose import texts

ROOT = Path(__file__).parents[1]
LIMIT = 400
FILES = sorted(
    f.relative_to(ROOT).as_posix()
    for folder in ("irload", "cli", "models", "tests")
    for f in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("folder", ["irload", "cli", "models", "tests"])
def test_files_stay_small(folder):
    sizes = {f: len((ROOT / f).read_text(encoding="utf-8").splitlines()) for f in FILES if f.startswith(f"{folder}/")}
    assert sizes
    assert {f: n for f, n in sizes.items() if n > LIMIT} == {}


GENERATED = {"imports.md", "operations.md", "rules.md"}
"""Pages generated from the registries, for reference."""


def test_pages_stay_short():
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(p for p in (ROOT / "docs").glob("*.md") if p.name != "operations.md"),  # generated; for reference
        *(ROOT / "docs").glob("*/*.md"),
    ]
    long = {p.name: n for p in pages if (n := _written(p.read_text(encoding="utf-8"))) > 250}
    assert {name: n for name, n in long.items() if name not in GENERATED} == {}


def _written(text: str) -> int:
    """The number of lines of a page without its generated table."""
    before, _, rest = text.partition(texts.BEGIN)
    return len((before + rest.partition(texts.END)[2]).splitlines())

"""Run the examples of the README and of docs/. `...` in an expected output stands for anything."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from pathlib import Path

import pytest

from irrun.main import main

pytestmark = pytest.mark.usefixtures("passing_extensions")
ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The fenced blocks of a language, with the line that each begins on."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start()) + 2, m[2]) for m in BLOCK.finditer(text) if m[1] == language]


CONSOLE = [
    pytest.param(code, id=f"{page.relative_to(ROOT).as_posix()}:{line}")
    for page in PAGES
    for line, code in blocks(page, "console")
]


def test_the_readme_is_short():
    words = (ROOT / "README.md").read_text(encoding="utf-8").split()
    assert len(words) <= 900


def test_there_are_examples():
    assert len(blocks(ROOT / "README.md", "python")) >= 4
    assert len(blocks(ROOT / "README.md", "console")) >= 3


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A writable folder with the files that the examples read."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("models", "docs", "examples", "schemas"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_python(page, clone, monkeypatch):
    monkeypatch.chdir(clone)
    names: dict[str, object] = {"__name__": "example"}
    for line, code in blocks(page, "python"):
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)


@pytest.mark.parametrize("code", CONSOLE)
def test_console(code, clone, monkeypatch, capsys):
    monkeypatch.chdir(clone)
    monkeypatch.delenv("COLUMNS", raising=False)
    for part in re.split(r"^\$ ", code, flags=re.M)[1:]:
        command, _, wanted = part.partition("\n")
        words = shlex.split(command)
        assert words[0] == "irrun"
        main(words[1:])
        shown = capsys.readouterr()
        printed = trimmed(shown.out or shown.err)
        checker = doctest.OutputChecker()
        assert checker.check_output(trimmed(wanted), printed, doctest.ELLIPSIS), f"{command}\n{printed}"


def trimmed(text: str) -> str:
    """Without trailing blanks, which tables have."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), target

"""The recipes in docs/ci.md are complete, and their commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from irload import __version__
from irrun.main import OK, main
from tests.cli.conftest import MODELS

PAGE = (Path(__file__).parents[1] / "docs" / "ci.md").read_text("utf-8")
BLOCKS = re.findall(r"(?ms)^```(?:yaml|toml)\n(.*?)^```", PAGE)
COMMANDS = re.findall(r"(?m)^\s*(?:- run:|-|entry:) (irrun .*)$", "\n".join(BLOCKS))


def test_recipes_have_no_placeholders() -> None:
    assert len(BLOCKS) == 5
    assert not re.search(r"<[^>]+>|TODO|example\.com|OWNER|your-", "\n".join(BLOCKS))
    assert set(re.findall(r"irload-([0-9.]+)-py3", PAGE)) == {__version__}


def test_there_are_commands() -> None:
    assert [re.search(r"--format (\w+)", c)[1] for c in COMMANDS if "--format" in c] == ["github", "sarif", "junit"]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").symlink_to(MODELS)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)[1:]
    words = [*words, "models/digits/model.xml"] if "models/" not in words else words
    assert main(words) == OK

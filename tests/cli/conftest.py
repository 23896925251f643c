"""Fixtures and helpers that run the command line: in this process, or in a new one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from irrun.main import main

MODELS = Path(__file__).parents[2] / "models"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def irrun(capsys: pytest.CaptureFixture[str]):
    """Runs the command line in this process."""

    def run(*words: object) -> Outcome:
        code = main([str(w) for w in words])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


def irrun_process(*words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line in a new process, as users do."""
    return subprocess.run(
        [sys.executable, "-m", "irrun", *map(str, words)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **variables},
        check=False,
    )

"""Runs the tests of files, names and processes in a process without the features that Windows lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.platforms.parts import PARTS

ROOT = Path(__file__).parents[2]


@pytest.mark.nightly
def test_the_suite_without_names_that_windows_lacks() -> None:
    words = ["-n", "0", "-p", "no:cacheprovider", "-p", "tests.platforms.windows", *PARTS]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cli")])},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert process.returncode == 0, process.stdout[-4000:]
    assert int(process.stdout.split(" passed")[0].split()[-1]) > 250

"""Tests that touch files, names and processes pass in a process that lacks what Windows lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = (
    "tests/read/test_files.py",
    "tests/read/test_constants.py",
    "tests/write/test_save.py",
    "tests/test_models.py",
    "tests/cli/test_run.py",
    "tests/checks/test_files.py",
    "tests/hostile/test_arrays.py",
    "tests/hostile/test_weights.py",
    "tests/batch/test_predictor.py",
)


def test_the_suite_without_what_windows_lacks() -> None:
    """FIFOs are left out, as there are none on Windows to be made."""
    words = ["-n", "0", "-p", "no:cacheprovider", "-p", "tests.platforms.windows", "-k", "not FIFO", *PARTS]
    found = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cli")])},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert found.returncode == 0, found.stdout[-4000:]
    assert int(found.stdout.split(" passed")[0].split()[-1]) > 150

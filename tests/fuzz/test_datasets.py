"""A few hostile data sets; `make fuzz-data` plays more."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="plays in forked processes")
def test_nothing_is_lost_or_astray():
    words = [sys.executable, "-m", "tests.fuzz.datasets", "25", "--seed", "5"]  # a process without threads, to fork
    played = subprocess.run(words, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stdout + played.stderr
    assert "25 data sets" in played.stdout

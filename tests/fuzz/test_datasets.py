"""A few hostile data sets; `make fuzz-data` runs more."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.harness.tiers import tiered

COUNT = str(tiered(4, 25))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="plays in forked processes")
def test_no_item_is_lost_or_misplaced():
    words = [sys.executable, "-m", "tests.fuzz.datasets", COUNT, "--seed", "5"]  # forks, so it has no threads
    played = subprocess.run(words, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stdout + played.stderr
    assert f"{COUNT} data sets" in played.stdout

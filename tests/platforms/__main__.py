"""`python -m tests.platforms` runs on this system the tests that depend on it; CI does so on Windows and macOS."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.platforms.parts import PARTS

sys.exit(pytest.main([f"--rootdir={Path(__file__).parents[2]}", *PARTS, *sys.argv[1:]]))

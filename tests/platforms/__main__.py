"""`python -m tests.platforms` runs the tests that depend on the system; CI runs it on Windows and macOS."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.platforms.parts import PARTS

sys.exit(pytest.main([f"--rootdir={Path(__file__).parents[2]}", *PARTS, *sys.argv[1:]]))

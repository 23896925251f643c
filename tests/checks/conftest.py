"""Fixtures of the tests of `irrun check`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import irrun

__all__ = ["irrun"]  # a fixture


@pytest.fixture(autouse=True)
def unbounded_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are compared line by line, so the width of a terminal must not wrap them."""
    monkeypatch.delenv("COLUMNS", raising=False)

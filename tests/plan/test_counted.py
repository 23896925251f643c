"""The work of every kernel, counted, is what the table says. `python -m tests.plan.counted` writes it anew."""

from __future__ import annotations

import json

import pytest

from tests.plan.counted import FILE, GRAPHS, counted

TABLE = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", GRAPHS)
def test_counted(name: str) -> None:
    assert counted(GRAPHS[name]) == TABLE[name], "if that is meant: python -m tests.plan.counted"

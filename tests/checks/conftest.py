from __future__ import annotations

from tests.cli.conftest import irrun

__all__ = ["irrun"]  # a fixture

"""Fixtures shared with the tests of the command line."""

from __future__ import annotations

from tests.cli.conftest import irrun

__all__ = ["irrun"]

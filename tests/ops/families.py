"""Imports the case tables: every `cases*.py` below tests/ops."""

from __future__ import annotations

import importlib
import pkgutil

import tests.ops


def load_families() -> None:
    """Import every family's cases, which registers their generators."""
    for module in pkgutil.walk_packages(tests.ops.__path__, "tests.ops."):
        if module.name.rpartition(".")[2].startswith("cases"):
            importlib.import_module(module.name)

"""The rules of `irrun check`, one file per group of codes."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from irload.checks.rule import Rule, table

__all__ = ["all_rules"]


@cache
def all_rules() -> tuple[Rule, ...]:
    """All rules, sorted by code. Imports the files of this folder, whose decorators register the rules."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        import_module(module.name)
    return tuple(table[code] for code in sorted(table))

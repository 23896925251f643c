"""The result of `irrun check`, for display or for a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irload.checks import Report
from irload.checks.report import Suppression


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The reports, the number of skipped XML files, and the suppressions without effect.

    `notes`: whether notes are shown, not only counted. `every`: whether text reports repeat warnings and notes that
    differ only in the layer.
    """

    reports: Sequence[Report]
    passed: int = 0
    unused: Sequence[Suppression] = ()
    notes: bool = False
    every: bool = False

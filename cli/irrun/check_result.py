"""What `irrun check` found, to be shown or written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irload.checks import Report
from irload.checks.report import Suppression


@dataclass(frozen=True, slots=True)
class Result:
    """What was checked: the reports, how many XML files were passed over, and what suppresses nothing.

    `notes`: whether those are shown one by one.
    """

    reports: Sequence[Report]
    passed: int = 0
    unused: Sequence[Suppression] = ()
    notes: bool = False

"""How faults of a file are reported, and after how many reading stops: a file may consist of nothing else."""

from __future__ import annotations

from collections.abc import Callable

from irload.errors import IRError, ReadError

__all__ = ["WARNINGS", "OnFault", "counted", "raise_first"]

OnFault = Callable[[IRError], None]

FAULTS = 10_000
"""Faults after which reading is given up."""
WARNINGS = 10_000
"""Warnings that are kept of one file."""


def raise_first(error: IRError) -> None:
    """The strict report: the first fault ends the reading."""
    raise error


def counted(report: OnFault) -> OnFault:
    """The same report, which raises ReadError when there are more than FAULTS faults."""
    found = 0

    def count(error: IRError) -> None:
        nonlocal found
        found += 1
        if found > FAULTS:
            raise ReadError(f"has more than {FAULTS} faults; reading was given up", error.where)
        report(error)

    return report if report is raise_first else count

"""Reports faults, up to a maximum number, because a file may consist of nothing but faults."""

from __future__ import annotations

from collections.abc import Callable

from irload.errors import IRError, ReadError

__all__ = ["WARNINGS", "OnFault", "counted", "raise_first"]

OnFault = Callable[[IRError], None]

FAULTS = 10_000
"""Maximum number of faults before reading stops."""
WARNINGS = 10_000
"""Maximum number of warnings recorded per file."""


def raise_first(error: IRError) -> None:
    """The strict report: raises the first fault."""
    raise error


def counted(report: OnFault) -> OnFault:
    """Return a report that passes faults to `report`, and raises ReadError after FAULTS of them."""
    faults = 0

    def count(error: IRError) -> None:
        nonlocal faults
        faults += 1
        if faults > FAULTS:
            raise ReadError(f"has more than {FAULTS} faults; reading stopped", error.where)
        report(error)

    return report if report is raise_first else count

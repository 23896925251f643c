"""What a deviation is: tests/harness/deviations.py has the list."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Deviation:
    """`rows`: types concerned; `where`: which part of the runtime departs; `what`: how, and what irload does."""

    rows: tuple[str, ...]
    where: str
    what: str

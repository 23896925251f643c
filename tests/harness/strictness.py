"""Where irload and the runtime differ in what they accept, on purpose: one entry a place, with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.harness.case import Case


@dataclass(frozen=True)
class Strictness:
    """`side`: what irload does; `types`: the operations concerned (none: all); `words`: a pattern that the complaint
    (irload's where it rejects, else the runtime's) matches; `why`: the reason.
    """

    side: str
    types: tuple[str, ...]
    words: str
    why: str


STRICTNESS: tuple[Strictness, ...] = ()


def reason(case: Case, side: str, words: str) -> str | None:
    """Why irload may do this (`rejected` or `accepted`) where the runtime does the opposite; None where nobody said."""
    for entry in STRICTNESS:
        if entry.side == side and (not entry.types or case.type in entry.types) and re.search(entry.words, words):
            return entry.why
    return None

"""Where irload departs from the runtime on purpose: one entry a place, with the reason.

Semantics follow the specification, then the reference kernels, then the CPU plugin. A case generator that would meet one
of these places either avoids it or compares with the side that follows the specification.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Deviation:
    """`rows`: types concerned; `where`: which part of the runtime departs; `what`: how, and what irload does."""

    rows: tuple[str, ...]
    where: str
    what: str


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        ("Add", "Subtract", "Multiply"), "CPU plugin", "saturates narrow integers; the reference and irload wrap"
    ),
)

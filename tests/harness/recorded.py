"""Comparisons with the OpenVINO runtime that have passed, so that `make test` repeats only changed ones.

tests/data/agreed.csv has a digest per comparison, of all its data on irload's side: models, inputs, results,
tolerances. Data with a recorded digest agree with OpenVINO as before. Other data, for example with a last bit that
another processor rounds differently, are compared with OpenVINO immediately. The nightly run compares everything.
`python -m tests.harness.recorded` compares everything and writes the file.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.harness import tiers

FILE = Path(__file__).parents[1] / "data" / "agreed.csv"
TESTS = ("tests/ops/test_conformance.py", "tests/write/test_rows.py", "tests/test_schema.py")
compared: dict[str, str] = {}
"""The comparisons that passed in this process."""


def agrees(name: str, evidence: Iterable[bytes], compare: Callable[[], None]) -> None:
    """Call `compare`, which compares with OpenVINO, unless a comparison of the same data is recorded as passed."""
    digest = digest_of(evidence)
    if tiers.NIGHTLY or recorded().get(name) != digest:
        compare()
        compared[name] = digest


def digest_of(evidence: Iterable[bytes]) -> str:
    """Sixteen hexadecimal digits; the boundaries between pieces are hashed, too."""
    total = hashlib.sha256()
    for piece in evidence:
        total.update(b"%d\n" % len(piece) + piece)
    return total.hexdigest()[:16]


@cache
def recorded() -> dict[str, str]:
    """The digest of each comparison by its name."""
    if not FILE.exists():
        return {}
    with open(FILE, encoding="utf-8", newline="") as file:
        return dict(csv.reader(file))


def main() -> int:
    """Compare everything; write the file if all of it agrees."""
    tiers.NIGHTLY = True
    status = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *TESTS])
    from tests.harness.recorded import compared  # the module that the tests import, which is not __main__

    if status == pytest.ExitCode.OK:
        with open(FILE, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(sorted(compared.items()))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())

"""The reference of each row's tests: `python -m tests.oracles` writes tests/data/oracles.csv from sampled cases.

Columns: type, version, and the numbers of cases, of 24, that are compared with OpenVINO's reference kernels, with its
CPU plugin, and with independently computed results. docs/operations.md explains them.
"""

from __future__ import annotations

import csv
import sys
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

from tests.harness import runtime
from tests.harness.case import GENERATORS, Case
from tests.harness.children import Died, in_children, preload
from tests.ops.families import load_families

FILE = Path(__file__).parent / "data" / "oracles.csv"
CASES = 24
COLUMNS = ("reference", "cpu", "worked")


def oracle_of(case: Case) -> str:
    """The reference of the case."""
    if case.expected is not None:
        return "worked"
    for name in ("cpu", "reference") if case.oracle == "cpu-first" else ("reference", "cpu"):
        if case.oracle in (name, "both", "cpu-first"):
            try:
                runtime.ORACLES[name](runtime.read(case), case)
            except runtime.NoKernel:
                continue
            return name
    return ""


def main() -> None:
    """Sample every row and write the file."""
    load_families()
    preload()
    with open(FILE, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["type", "version", *COLUMNS])
        for row in sorted(GENERATORS, key=lambda r: (r[0].lower(), len(r[1]), r[1])):
            seed = [2026, zlib.crc32("-".join(row).encode())]

            def sample(k: int, row: tuple[str, str] = row, seed: list[int] = seed) -> str:
                return oracle_of(GENERATORS[row][k % len(GENERATORS[row])](np.random.default_rng([*seed, k])))

            counts = Counter(o for o in in_children(sample, CASES) if not isinstance(o, Died))
            lines.writerow([*row, *(counts[c] for c in COLUMNS)])


if __name__ == "__main__":
    sys.exit(main())

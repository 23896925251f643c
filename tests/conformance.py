"""Conformance on demand: `python -m tests.conformance [N] [SEED] [ROW…]` prints a line per row and a total.

Each row runs in a child process, so that a crash of OpenVINO costs one case. Columns: cases, agreed, deviating;
shape inferences compared (static and relaxed), inferences that are compatible but not equal, for a reason documented in
the case, and inferences that differ; then the first case that deviates.
"""

from __future__ import annotations

import sys
import zlib
from collections import Counter

import numpy as np

from tests.harness import verify
from tests.harness.case import GENERATORS
from tests.harness.children import Died, in_children, preload
from tests.ops.families import load_families

COLUMNS = ("cases", "agreed", "deviating", "shapes", "compatible", "differing")

Row = tuple[str, str]


def case_of(row: Row, seed: int, k: int) -> tuple[Counter[str], str]:
    """The counts of case `k` of a row, and its deviations. Each case has a separate random generator."""
    rng = np.random.default_rng([seed, zlib.crc32("-".join(row).encode()), k])
    tally: Counter[str] = Counter(cases=1)
    case = None
    try:
        case = GENERATORS[row][k % len(GENERATORS[row])](rng)
        verify.check_everything(case, rng, tally)
        tally["agreed"] += 1
        return tally, ""
    except Exception as error:  # any exception belongs in the table
        tally["deviating"] += 1
        return tally, f"{type(error).__name__}: {error} [{case}]"


def main(count: int, seed: int, wanted: list[str]) -> int:
    """Run `count` random cases per row and print the results. Returns 1 if any deviated."""
    load_families()
    preload()
    rows = [r for r in sorted(GENERATORS) if not wanted or any(w in "-".join(r) for w in wanted)]
    print(f"{'seed ' + str(seed):56}" + "".join(f"{c:>11}" for c in COLUMNS))
    total: Counter[str] = Counter()
    for row in rows:
        tally: Counter[str] = Counter()
        first = ""
        for k, outcome in enumerate(in_children(lambda k, row=row: case_of(row, seed, k), count)):
            counts, words = outcome if not isinstance(outcome, Died) else (Counter(cases=1, deviating=1), str(outcome))
            tally += counts
            first = first or (words and f"case {k}: {words}")
        total += tally
        _line("-".join(row), tally, first)
    _line(f"total of {len(rows)} rows", total, "")
    return 1 if total["deviating"] else 0


def _line(name: str, tally: Counter[str], words: str) -> None:
    print(f"{name:56}" + "".join(f"{tally[c]:11}" for c in COLUMNS) + f"  {words[:1200]}".rstrip(), flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    numbers = [int(a) for a in arguments if a.isdigit()]
    words = [a for a in arguments if not a.isdigit()]
    sys.exit(main(*(numbers + [20, 1][len(numbers) :])[:2], words))

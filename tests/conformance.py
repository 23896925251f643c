"""Conformance on demand: `python -m tests.conformance [N] [SEED] [ROW…]` prints a table a row: cases, agreed, deviating."""

from __future__ import annotations

import sys
import zlib
from collections import Counter

import numpy as np

from tests.harness import verify
from tests.harness.case import GENERATORS
from tests.ops.families import load_families


def main(count: int, seed: int, wanted: list[str]) -> int:
    """Run `count` random cases a row and print what came of them. Returns 1 when any deviated."""
    load_families()
    failed = 0
    for row in sorted(GENERATORS):
        if wanted and not any(w in "-".join(row) for w in wanted):
            continue
        rng = np.random.default_rng([seed, zlib.crc32("-".join(row).encode())])
        outcomes: Counter[str] = Counter()
        first = ""
        for k in range(count):
            case = GENERATORS[row][k % len(GENERATORS[row])](rng)
            try:
                verify.check_everything(case, rng)
                outcomes["agreed"] += 1
            except Exception as error:  # whatever went wrong belongs into the table
                outcomes["deviating"] += 1
                first = first or f"{type(error).__name__}: {error} [{case}]"
        failed += outcomes["deviating"]
        print(
            f"{'-'.join(row):48} {count:6} {outcomes['agreed']:6} {outcomes['deviating']:6}  {first[:1200]}", flush=True
        )
    return 1 if failed else 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    numbers = [int(a) for a in arguments if a.isdigit()]
    words = [a for a in arguments if not a.isdigit()]
    sys.exit(main(*(numbers + [20, 1][len(numbers) :])[:2], words))

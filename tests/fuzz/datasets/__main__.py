"""python -m tests.fuzz.datasets N [--seed SEED] [--only NUMBER]: run hostile data sets and report failures."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.fuzz.datasets.play import Failure, play_aside


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run only this data set")
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="irload-datasets-"))
    ends: Counter[str] = Counter()
    failures = 0
    for number in range(arguments.count) if arguments.only is None else [arguments.only]:
        try:
            ends[play_aside(arguments.seed, number, scratch)] += 1
        except Failure as error:
            failures += 1
            print(f"{arguments.seed}/{number}: {error}\n  kept in {scratch}/{arguments.seed}_{number}", flush=True)
    print(f"{sum(ends.values()) + failures} data sets: {dict(ends)}, {failures} failures")
    if not failures:
        scratch.rmdir()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

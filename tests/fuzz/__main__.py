"""Fuzzes irload with mutants of the project's models: `python -m tests.fuzz [N] [--seed S] [--json] [--failures DIR]`.

Each mutant is read, checked, inferred, compiled and run in a separate process with limits on memory, processor time and
files. Exits 1 if anything failed and writes the files of each failure to DIR.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.campaign import outcomes
from tests.fuzz.report import Tally


def main(arguments: Sequence[str]) -> int:
    """Run the campaign and print its report. Returns 1 if anything failed, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument("--failures", type=Path, help="folder for the files of failed mutants")
    options = parser.parse_args(arguments)
    folder = options.failures or Path(tempfile.mkdtemp(prefix="irload-fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    tally, began = Tally(options.seed), time.perf_counter()
    for outcome in outcomes(options.count, options.seed, folder, options.workers, options.start):
        tally.add(outcome)
        if tally.count % 500 == 0:
            print(f"{tally.count} mutants, {len(tally.failures)} failures", file=sys.stderr)
    tally.wall = time.perf_counter() - began
    for used in folder.glob("worker*"):
        shutil.rmtree(used)
    if options.failures is None and not tally.failures:
        folder.rmdir()
    print(json.dumps(tally.to_dict(), indent=2) if options.json else tally.text(folder))
    return int(bool(tally.failures) or tally.count != options.count)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

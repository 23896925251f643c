"""Runs a seeded sample of mutants and lists the survivors: `make mutants N=400 SEED=7`."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.conduct import Conductor, Outcome
from tests.mutants.reach import import_all, measured
from tests.mutants.sample import sample

OF = ("irload/plan", "irload/inference.py", "irload/read")
SPEED_ALONE = ("irload/plan/backends/numpy/measured.py",)
"""Files whose numbers affect speed only, never results: no test can detect a mutant of them."""
# Tests that start processes detect nothing: these import the files on disk.
TESTS = (
    *("tests/plan", "tests/read", "tests/write", "tests/checks", "tests/fuzz/test_reader.py"),
    *("tests/fuzz/test_programs.py", "--deselect=tests/fuzz/test_programs.py::test_random_programs"),
    *("tests/test_models.py", "tests/test_reshape.py", "tests/test_half.py", "tests/test_public_api.py"),
    *("tests/test_integrity.py", "tests/test_macs.py", "tests/test_extensions.py", "tests/test_config.py"),
    *("tests/test_inference.py", "tests/test_limits.py", "tests/test_v10.py", "tests/hostile/test_graph.py"),
)


def main() -> int:
    """Parse the command line, run the mutants, print the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("count", type=int, help="number of mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--of", nargs="+", default=OF, help="folders and files to change")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="tests to run")
    parser.add_argument("--jobs", type=int, default=2, help="mutants run concurrently")
    parser.add_argument("--json", type=Path, help="write all outcomes to this file")
    args = parser.parse_args()
    root = Path.cwd()
    files = [f for name in args.of for f in ([root / name] if name.endswith(".py") else (root / name).rglob("*.py"))]
    mutants = sample(root, [f for f in files if str(f.relative_to(root)) not in SPEED_ALONE], args.count, args.seed)
    reach = measured(root, args.of, args.tests)
    for test in reach.failed:
        print(f"excluded, because it fails while lines are counted: {test}", file=sys.stderr)
    import_all()
    conductor = Conductor(root, mutants, reach, args.jobs)
    pytest.main(["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", *args.tests], plugins=[conductor])
    if args.json:
        args.json.write_text(json.dumps([_entry(o) for o in conductor.outcomes], indent=1), encoding="utf-8")
    report(conductor.outcomes)
    return 0


def _entry(outcome: Outcome) -> dict[str, object]:
    old, new = outcome.mutant.changed
    entry = {"place": outcome.mutant.place, "operator": outcome.mutant.operator, "old": old, "new": new}
    return {**entry, "how": outcome.how, "by": outcome.by, "seconds": round(outcome.seconds, 2)}


def report(outcomes: list[Outcome]) -> None:
    """Print the survivors and the score."""
    for outcome in sorted(outcomes, key=lambda o: (o.mutant.file, o.mutant.line)):
        if not outcome.noticed:
            old, new = outcome.mutant.changed
            print(f"{outcome.mutant.place} {outcome.mutant.operator} {outcome.how}\n  - {old}\n  + {new}")
    counts = Counter(o.how for o in outcomes)
    print(", ".join(f"{n} {how}" for how, n in counts.most_common()))
    if outcomes:
        noticed = sum(o.noticed for o in outcomes)
        print(f"score: {noticed} of {len(outcomes)}, {noticed / len(outcomes):.1%}")


if __name__ == "__main__":
    sys.exit(main())

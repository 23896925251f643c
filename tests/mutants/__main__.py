"""Plays a seeded sample of mutants and lists those that no test notices: `make mutants N=400 SEED=7`."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.conduct import Conductor, Outcome
from tests.mutants.equivalents import equivalents
from tests.mutants.reach import import_all, measured
from tests.mutants.sample import sample

OF = ("irload/plan", "irload/inference.py", "irload/read")
# What runs programs in processes of its own notices nothing: these import what stands on disk.
TESTS = (
    *("tests/plan", "tests/read", "tests/write", "tests/checks", "tests/fuzz/test_reader.py"),
    *("tests/fuzz/test_programs.py", "--deselect=tests/fuzz/test_programs.py::test_random_programs"),
    *("tests/test_models.py", "tests/test_reshape.py", "tests/test_half.py", "tests/test_public_api.py"),
    *("tests/test_integrity.py", "tests/test_macs.py", "tests/test_extensions.py", "tests/test_config.py"),
)


def main() -> int:
    """Parse the command line, play, report."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("count", type=int, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--of", nargs="+", default=OF, help="folders and files to change")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="tests that may notice")
    parser.add_argument("--jobs", type=int, default=2, help="mutants played at the same time")
    parser.add_argument("--json", type=Path, help="write all outcomes to this file")
    args = parser.parse_args()
    root = Path.cwd()
    files = [f for name in args.of for f in ([root / name] if name.endswith(".py") else (root / name).rglob("*.py"))]
    mutants = sample(root, files, args.count, args.seed)
    reach = measured(root, args.of, args.tests)
    for test in reach.failed:
        print(f"left out, as it fails while lines are counted: {test}", file=sys.stderr)
    import_all()
    conductor = Conductor(root, mutants, reach, args.jobs)
    pytest.main(["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", *args.tests], plugins=[conductor])
    if args.json:
        args.json.write_text(json.dumps([_entry(o) for o in conductor.outcomes], indent=1), encoding="utf-8")
    return report(conductor.outcomes)


def _entry(outcome: Outcome) -> dict[str, object]:
    old, new = outcome.mutant.changed
    entry = {"place": outcome.mutant.place, "operator": outcome.mutant.operator, "old": old, "new": new}
    return {**entry, "how": outcome.how, "by": outcome.by, "seconds": round(outcome.seconds, 2)}


def report(outcomes: list[Outcome]) -> int:
    """Print the survivors and the score. 1 where a mutant that is listed as equivalent was noticed."""
    listed = equivalents()
    equivalent = {id(o): e for o in outcomes for e in listed if e.covers(o.mutant)}
    alive = [o for o in sorted(outcomes, key=lambda o: (o.mutant.file, o.mutant.line)) if not o.noticed]
    for outcome in alive:
        old, new = outcome.mutant.changed
        reason = f" (equivalent: {equivalent[id(outcome)].reason})" if id(outcome) in equivalent else ""
        print(f"{outcome.mutant.place} {outcome.mutant.operator} {outcome.how}{reason}\n  - {old}\n  + {new}")
    wrong = [o for o in outcomes if o.noticed and id(o) in equivalent and equivalent[id(o)].exact]
    for outcome in wrong:
        print(f"{outcome.mutant.place} is listed as equivalent, but {outcome.how} by {outcome.by}")
    explained = sum(id(o) in equivalent for o in alive)
    counts = Counter(o.how for o in outcomes)
    print(", ".join(f"{n} {how}" for how, n in counts.most_common()) + f", {explained} of them explained")
    if len(outcomes) > explained:
        noticed = counts["killed"] + counts["hung"]
        print(f"score: {noticed} of {len(outcomes) - explained}, {noticed / (len(outcomes) - explained):.1%}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

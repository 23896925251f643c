"""The tests that reach each line, and their times: measured once for a tree, then stored.

`python -m tests.mutants.reach FILE FOLDER,FOLDER… TESTS…` measures, in a process that has imported nothing before.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from time import process_time

import coverage
import pytest

import irload

Lines = dict[str, dict[int, set[str]]]


@dataclass
class Reach:
    """The result of a run of all tests."""

    seconds: dict[str, float]
    """Processor seconds of every test that passed."""
    tests: Lines
    """Ids of tests by file and line; the id "" is the import of modules and the collection of tests."""
    failed: list[str]
    """Tests that fail without any mutant while lines are counted, and are excluded."""

    def of(self, file: str, lines: range, function: range, budget: float) -> list[str]:
        """The tests that reach one of the lines, up to `budget` seconds.

        Half of the time is for tests that also reach a line of the function that at most a tenth of them reach: every
        check of a file runs all rules, but few checks find something by any one.
        """
        return self._rarest(file, function, self._at(file, lines), budget)

    def around(self, file: str, budget: float) -> list[str]:
        """For code that runs at import: half of the time for tests that reach the file, then any others."""
        lines = self.tests.get(file, ())
        first = self._rarest(file, lines, self._at(file, lines), budget / 2)
        used = sum(self.seconds[t] for t in first)
        return [*first, *self._promising(self.seconds.keys() - set(first), budget - used)]

    def _rarest(self, file: str, lines: Iterable[int], tests: set[str], budget: float) -> list[str]:
        """These tests, first any that reach a line of these that at most a tenth reach."""
        by_line = [self._at(file, [n]) & tests for n in lines]
        rare = set[str]().union(*(found for found in by_line if 10 * len(found) <= len(tests)))
        first = self._promising(rare, budget / 2)
        used = sum(self.seconds[t] for t in first)
        return [*first, *self._promising(tests - set(first), budget - used)]

    def _at(self, file: str, lines: Iterable[int]) -> set[str]:
        reached = self.tests.get(file, {})
        return set().union(*(reached.get(n, set()) for n in lines)) & self.seconds.keys()

    def _promising(self, tests: set[str], budget: float) -> list[str]:
        """Fast ones first, but the first case of each test before the second of any."""
        cases: dict[str, int] = defaultdict(int)
        order: dict[str, float] = {}
        for test in sorted(tests, key=lambda t: (self.seconds[t], t)):
            name = test.split("[")[0]
            cases[name] += 1
            order[test] = self.seconds[test] * cases[name]
        ordered = sorted(tests, key=lambda t: (order[t], t))
        ends = accumulate(self.seconds[t] for t in ordered)
        return [test for test, end in zip(ordered, ends, strict=True) if end <= budget]

    def at_import(self, file: str, lines: range) -> bool:
        """Whether one of the lines runs before the first test."""
        return any("" in self.tests.get(file, {}).get(line, ()) for line in lines)


def import_all() -> None:
    """Import every module of irload, including modules that are imported lazily."""
    for module in pkgutil.walk_packages(irload.__path__, "irload."):
        if "__main__" not in module.name:
            importlib.import_module(module.name)


class Watch:
    """Records executed lines from its construction on. A plugin of pytest: records the current test and its time."""

    def __init__(self, root: Path, folders: Sequence[str]) -> None:
        self._root = root
        self._coverage = coverage.Coverage(
            data_file=None,
            include=[str(root / f) + ("" if f.endswith(".py") else "/*") for f in folders],
            config_file=False,
        )
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._coverage.start()
        import_all()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        start = _processor_seconds()
        result = yield
        self._seconds[item.nodeid] = _processor_seconds() - start
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)

    def stop(self) -> None:
        """Stop recording."""
        self._coverage.stop()

    def result(self) -> Reach:
        """The recorded tests and lines."""
        self.stop()
        data = self._coverage.get_data()
        tests: Lines = {}
        for file in data.measured_files():
            lines = data.contexts_by_lineno(file)
            tests[str(Path(file).relative_to(self._root))] = {n: set(ids) for n, ids in lines.items()}
        passed = {test: s for test, s in self._seconds.items() if test not in self._failed}
        return Reach(passed, tests, sorted(self._failed))


def _processor_seconds() -> float:
    """The processor time of this process and of its children that ended; other processes do not affect it."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def keep(reach: Reach, file: Path) -> None:
    """Write it to a file. Each id is written once."""
    ids = sorted({test for lines in reach.tests.values() for found in lines.values() for test in found})
    number = {test: k for k, test in enumerate(ids)}
    tests = {f: {n: sorted(number[t] for t in found) for n, found in lines.items()} for f, lines in reach.tests.items()}
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    text = json.dumps({"ids": ids, "seconds": reach.seconds, "tests": tests, "failed": reach.failed})
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def kept(file: Path) -> Reach | None:
    """The contents of a file written by `keep`, or None if it does not exist."""
    if not file.exists():
        return None
    stored = json.loads(file.read_text(encoding="utf-8"))
    tests: Lines = defaultdict(dict)
    for name, lines in stored["tests"].items():
        tests[name] = {int(n): {stored["ids"][k] for k in found} for n, found in lines.items()}
    return Reach(stored["seconds"], tests, stored["failed"])


def measured(root: Path, folders: Sequence[str], tests: Sequence[str]) -> Reach:
    """The lines of these folders or files that these tests reach: from the stored file, or measured now."""
    file = root / ".mutants" / f"reach_{_fingerprint(root, *folders, *tests)}.json"
    reach = kept(file)
    if reach is None:
        command = [sys.executable, "-m", "tests.mutants.reach", str(file), ",".join(folders), *tests]
        subprocess.run(command, cwd=root, check=True, stdout=sys.stderr)
        reach = kept(file)
        assert reach is not None
    return reach


def _fingerprint(root: Path, *words: str) -> str:
    """A digest of all code and tests."""
    digest = hashlib.sha256("\n".join(words).encode())
    for file in sorted(f for folder in ("irload", "tests", "cli", "models") for f in (root / folder).rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    watch = Watch(Path.cwd(), sys.argv[2].split(","))
    pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *sys.argv[3:]], plugins=[watch])
    keep(watch.result(), Path(sys.argv[1]))

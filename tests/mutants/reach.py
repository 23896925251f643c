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
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time

import coverage
import pytest

import irload
from tests.mutants.choice import Lines, Reach


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


def write_reach(reach: Reach, file: Path) -> None:
    """Write it to a file. Each id is written once."""
    ids = sorted({test for lines in reach.tests.values() for reaching in lines.values() for test in reaching})
    number = {test: k for k, test in enumerate(ids)}
    tests = {
        f: {n: sorted(number[t] for t in reaching) for n, reaching in lines.items()} for f, lines in reach.tests.items()
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    text = json.dumps({"ids": ids, "seconds": reach.seconds, "tests": tests, "failed": reach.failed})
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def read_reach(file: Path) -> Reach | None:
    """The contents of a file written by `write_reach`, or None if it does not exist."""
    if not file.exists():
        return None
    stored = json.loads(file.read_text(encoding="utf-8"))
    tests: Lines = defaultdict(dict)
    for name, lines in stored["tests"].items():
        tests[name] = {int(n): {stored["ids"][k] for k in reaching} for n, reaching in lines.items()}
    return Reach(stored["seconds"], tests, stored["failed"])


def measured(root: Path, folders: Sequence[str], tests: Sequence[str]) -> Reach:
    """The lines of these folders or files that these tests reach: from the stored file, or measured now."""
    file = root / ".mutants" / f"reach_{_fingerprint(root, *folders, *tests)}.json"
    reach = read_reach(file)
    if reach is None:
        command = [sys.executable, "-m", "tests.mutants.reach", str(file), ",".join(folders), *tests]
        subprocess.run(command, cwd=root, check=True, stdout=sys.stderr)
        reach = read_reach(file)
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
    write_reach(watch.result(), Path(sys.argv[1]))

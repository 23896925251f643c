"""Runs one mutant against the tests that reach it, in a separate process; stops at the first failure."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.apply import Substitute, changed_functions, swap
from tests.mutants.mutant import Mutant

MEMORY, FILE = 8 << 30, 1 << 30
"""Bytes of address space, and of a file, that a process may use: mutants of sizes can allocate absurd amounts."""


UNCHANGED = "none"
"""The operator of unchanged code: all of its tests run, to detect tests that fail in a forked process anyway."""


@dataclass(frozen=True, slots=True)
class Job:
    """A mutant, and the ids of its tests with the seconds that each takes."""

    mutant: Mutant
    tests: dict[str, float]
    at_import: bool
    """Whether the changed statement runs when its module is imported."""
    folder: str
    """Folder to which the process may write; its file `killer` names the test that failed."""


def play(job: Job, root: Path, session: pytest.Session) -> int:
    """In a forked process: returns 0 if the mutant survives, else 1. Exits for a mutant of code that runs at import."""
    confine(job)
    file = str(root / job.mutant.file)
    module = job.mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    try:
        functions = changed_functions(file, job.mutant.before, job.mutant.after)
    except SyntaxError as error:
        return _killed(job, f"SyntaxError: {error}")
    if functions is None or job.at_import or module not in sys.modules:
        path = Path(job.folder, "job.json")
        path.write_text(json.dumps(asdict(job)), encoding="utf-8")
        os.execv(sys.executable, [sys.executable, "-m", "tests.mutants.fresh", str(path), str(root), module])
    swap(file, functions)
    items = {item.nodeid: item for item in session.items}
    session.items = [items[test] for test in job.tests]
    session.config.option.maxfail = 0 if job.mutant.operator == UNCHANGED else 1
    session.config.pluginmanager.register(Guard(job))
    session.config.hook.pytest_runtestloop(session=session)
    return 1 if session.testsfailed else 0


def play_fresh(job: Job, root: Path, module: str) -> int:
    """The same as `play`, in a new process that has not imported irload."""
    Substitute(module, str(root / job.mutant.file), job.mutant.after).install()
    files = sorted({test.split("::")[0] for test in job.tests})
    status = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *files], plugins=[Only(list(job.tests)), Guard(job)])
    return 0 if status == pytest.ExitCode.OK else 1


def confine(job: Job) -> None:
    """Limit memory and discard output."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["IRLOAD_CACHE_DIR"] = job.folder
    tempfile.tempdir = None
    silent = os.open(Path(job.folder, "printed"), os.O_WRONLY | os.O_CREAT)
    os.dup2(silent, 1)
    os.dup2(silent, 2)


def _killed(job: Job, by: str) -> int:
    with open(Path(job.folder, "killer"), "a", encoding="utf-8") as file:
        file.write(by.replace("\n", " ") + "\n")
    return 1


class Guard:
    """Ends a test that takes more than ten times its time, and records the first failure."""

    def __init__(self, job: Job) -> None:
        self._job = job

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        end = used.ru_utime + used.ru_stime + 5 + 10 * self._job.tests[nodeid]
        resource.setrlimit(resource.RLIMIT_CPU, (int(end), resource.RLIM_INFINITY))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            _killed(self._job, report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            _killed(self._job, report.nodeid)


class Only:
    """Reduces the collected tests to the given ids, in that order."""

    def __init__(self, tests: list[str]) -> None:
        self._tests = tests

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        by_id = {item.nodeid: item for item in items}
        items[:] = [by_id[test] for test in self._tests if test in by_id]

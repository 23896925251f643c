"""Runs many mutants: a process that has collected all tests forks a child for each, and waits for it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.mutants.choice import Reach
from tests.mutants.job import UNCHANGED, Job, play
from tests.mutants.mutant import Mutant, Source

BUDGET = 20.0
"""Seconds of tests, as measured without mutants, that a mutant has to survive."""
PATIENCE = 30.0
"""Seconds without processor time after which a child counts as hanging."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a mutant."""

    mutant: Mutant
    how: str
    """`survived`, `not reached` (no test runs the line), `killed` or `hung`."""
    by: str = ""
    """The test that failed."""
    seconds: float = 0.0

    @property
    def noticed(self) -> bool:
        """Whether a test failed or did not end."""
        return self.how in ("killed", "hung")


@dataclass
class _Child:
    pid: int
    job: Job
    started: float = field(default_factory=time.monotonic)
    used: float = 0.0
    """Clock ticks used by the child until the last check."""
    active: float = field(default_factory=time.monotonic)
    """Monotonic time of the check at which `used` last grew."""

    def stuck(self) -> bool:
        """Whether the child has been idle for longer than PATIENCE."""
        used = _clock_ticks(self.pid)
        if used != self.used:
            self.used, self.active = used, time.monotonic()
        return time.monotonic() - self.active > PATIENCE


class Conductor:
    """A plugin of pytest that runs mutants instead of the collected tests."""

    def __init__(self, root: Path, mutants: Sequence[Mutant], reach: Reach, jobs: int) -> None:
        self.outcomes: list[Outcome] = []
        self._root, self._mutants, self._reach, self._jobs = root, mutants, reach, jobs
        self._children: list[_Child] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        unchanged = Mutant("irload/__init__.py", 1, UNCHANGED, "", "")
        self._start(Job(unchanged, self._reach.seconds, False, tempfile.mkdtemp()), session)
        while self._children:
            self._collect()
        for test in self.outcomes.pop().by.splitlines():
            if self._reach.seconds.pop(test, None) is None:
                raise pytest.UsageError(f"without any mutant, tests fail in a forked process: {test}")
            print(f"excluded, because it fails in a forked process: {test}", file=sys.stderr)
        for mutant in self._mutants:
            job = self._job(mutant)
            if not job.tests:
                self._tell(Outcome(mutant, "not reached"))
                continue
            while len(self._children) >= self._jobs:
                self._collect()
            self._start(job, session)
        while self._children:
            self._collect()
        return True

    def _job(self, mutant: Mutant) -> Job:
        source = Source(mutant.before)
        lines = source.statement(mutant.line)
        at_import = not source.in_function(mutant.line) or self._reach.at_import(mutant.file, lines)
        if at_import:
            tests = self._reach.around(mutant.file, 2 * BUDGET)
        else:
            tests = self._reach.of(mutant.file, lines, source.function(mutant.line), BUDGET)
        return Job(mutant, {t: self._reach.seconds[t] for t in tests}, at_import, tempfile.mkdtemp())

    def _start(self, job: Job, session: pytest.Session) -> None:
        self._children.append(_Child(self._fork(job, session), job))

    def _fork(self, job: Job, session: pytest.Session) -> int:
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            session.config.pluginmanager.unregister(self)
            status = play(job, self._root, session)
        finally:  # in any case, this process must not continue as its parent
            os._exit(status)

    def _collect(self) -> None:
        """Wait until one or more children have ended."""
        time.sleep(0.02)
        for child in list(self._children):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self._ended(child, os.waitstatus_to_exitcode(status))
            elif child.stuck():
                os.killpg(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
                self._ended(child, -signal.SIGXCPU)

    def _ended(self, child: _Child, code: int) -> None:
        self._children.remove(child)
        by = Path(child.job.folder, "killer")
        killer = by.read_text(encoding="utf-8").strip() if by.exists() else ""
        if code < 0 and not killer:
            killer = f"ended by {signal.Signals(-code).name}"
        how = "survived" if code == 0 else "hung" if code == -signal.SIGXCPU else "killed"
        shutil.rmtree(child.job.folder, ignore_errors=True)
        self._tell(Outcome(child.job.mutant, how, killer, time.monotonic() - child.started))

    def _tell(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        done = f"{len(self.outcomes)}/{len(self._mutants)}"
        print(f"{done} {outcome.how} {outcome.seconds:.1f} s {outcome.mutant.place} {outcome.by}", file=sys.stderr)


def _clock_ticks(pid: int) -> float:
    """Clock ticks used by a child and the children it waited for; 0 if the system does not report them."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return float(sum(map(int, fields[11:15])))

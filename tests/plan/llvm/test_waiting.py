"""Threads that wait for jobs in machine code: they run each job once, return on demand, and lose none."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.plan.backends.llvm.kernel import Launch, address
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.target import AVX2, _flags
from irload.plan.backends.llvm.waiting import SpinMailbox
from irload.plan.threads import pool
from tests.harness.tiers import tiered
from tests.plan.llvm.tiny import Fill

pytestmark = pytest.mark.skipif(not AVX2.flags <= _flags(), reason="this processor has no compiled kernels")

EVER = 1 << 60
"""Turns that never elapse during a test."""


class Filling:
    """A table that fills an array with 5."""

    def __init__(self, threads: int = 1) -> None:
        self.out = np.zeros(64, np.float32)
        self.table = launched([Launch(Fill(5, units=64), [address(self.out)])], AVX2, threads, 0)

    @property
    def job(self) -> tuple[int, ...]:
        return self.table.job(0, 1, 0, 1)

    def filled(self) -> bool:
        """Whether it is full; clears it."""
        full = bool((self.out == 5).all())
        self.out[:] = 0
        return full


@contextmanager
def serving(mailbox: SpinMailbox) -> Generator[threading.Thread]:
    """Another thread that waits for jobs there."""
    thread = threading.Thread(target=mailbox.serve, daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        mailbox.interrupt(True)
        thread.join(900)
        assert not thread.is_alive()


def submitted(mailbox: SpinMailbox, job: tuple[int, ...]) -> None:
    """Submit as soon as the thread waits."""
    until = time.monotonic() + 900
    while not mailbox.submit(job):
        assert time.monotonic() < until
        time.sleep(0.001)
    mailbox.finish()


def test_a_job_is_run_by_a_waiting_thread() -> None:
    mailbox, filling = SpinMailbox(AVX2, EVER), Filling()
    assert not mailbox.submit(filling.job)
    with serving(mailbox):
        submitted(mailbox, filling.job)
        assert filling.filled()
    assert not mailbox.submit(filling.job)
    assert not filling.filled()


def test_every_one_of_many_jobs_is_run_before_finish_returns() -> None:
    mailbox, fillings = SpinMailbox(AVX2, EVER), [Filling(), Filling()]
    with serving(mailbox):
        for k in range(tiered(300, 2000)):  # each needs both threads, so a busy machine takes milliseconds
            submitted(mailbox, fillings[k % 2].job)
            assert fillings[k % 2].filled()
            assert not fillings[1 - k % 2].filled()


def test_a_thread_loses_its_patience() -> None:
    SpinMailbox(AVX2, 10).serve()


def test_a_thread_that_is_interrupted_before_it_waits_returns_at_once() -> None:
    mailbox = SpinMailbox(AVX2, EVER)
    mailbox.interrupt(True)
    mailbox.serve()
    mailbox.interrupt(False)
    with serving(mailbox) as thread:
        thread.join(0.05)
        assert thread.is_alive()


def test_the_pool_submits_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a shared run the other thread waits, and runs the next one without Python."""
    taken: list[bool] = []
    submit = SpinMailbox.submit

    def noted(self: SpinMailbox, job: tuple[int, ...]) -> bool:
        taken.append(submit(self, job))
        return taken[-1]

    pool.forget()
    monkeypatch.setattr(SpinMailbox, "submit", noted)
    monkeypatch.setattr(
        SpinMailbox, "__init__", lambda self, target, sparing, init=SpinMailbox.__init__: init(self, target, EVER)
    )
    monkeypatch.setattr("irload.plan.backends.llvm.kernel.SHARED_CYCLES", 0)
    filling = Filling(threads=2)
    try:
        until = time.monotonic() + 900
        while taken.count(True) < 20:
            filling.table.run(0, 1)
            assert filling.filled()
            assert time.monotonic() < until
        pool.run([[], [(filling.out.fill, (5.0,))]])  # a part in Python, for a thread that would otherwise wait forever
        assert filling.filled()
        assert len(pool) == 1
    finally:
        pool._end(list(pool._threads))
    assert len(pool) == 0


def test_the_interpreter_may_end_while_a_thread_waits() -> None:
    """As on a busy machine, where the thread is late: its code has to stay mapped."""
    program = (
        "import sys\n"
        "from irload.plan.backends.llvm import kernel, launching\n"
        "from irload.plan.backends.llvm.waiting import SpinMailbox\n"
        "from irload.plan.threads import pool\n"
        "from irrun.main import main\n"
        "launching.TOGETHER_CYCLES = kernel.SHARED_CYCLES = 0\n"
        "SpinMailbox.__init__.__defaults__ = (1 << 40,)\n"
        "sys.argv = ['irrun', 'models/digits/model.xml', 'models/digits/digit_7_0.npy', '--threads', '2', '--json']\n"
        "code = main()\n"
        "print(len(pool), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    environment = {**os.environ, "IRLOAD_JIT": "auto"}
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
        assert (done.returncode, done.stderr) == (0, "1\n")

"""Teams of threads: every part of a kernel runs once, even if threads arrive late, sleep, leave or are not invited."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.plan.backends.llvm import intrinsics
from irload.plan.backends.llvm.builder import Function
from irload.plan.backends.llvm.crowding import DEBT, LIMIT, MOST, QUIET, RESUMED, SHORTEST_QUIET, UNTIL
from irload.plan.backends.llvm.kernel import Launch, address
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.target import AVX2, _flags
from irload.plan.backends.llvm.team import CROWDING, KernelTeam
from irload.plan.threads import ThreadPool
from irload.record import record
from tests.plan.llvm.tiny import Units

pytestmark = pytest.mark.skipif(not AVX2.flags <= _flags(), reason="this processor has no compiled kernels")

NEVER = 1 << 62
"""A time that the counter does not reach."""


@record()
class Count(Units):
    """Adds 1 to each unit, and to all scratch memory of the thread. `together`: waits until two threads run parts."""

    units: int = 24
    together: bool = False
    reserved: int = 64

    @property
    def scratch(self) -> int:
        return self.reserved

    def write(self, function: Function) -> None:
        f = function
        out, arrived = f.load_pointer(f["arguments"]), f.load_pointer(f["arguments"], 8)
        for index in f.range(f["begin"], f["end"]):
            f.store_scalar(f.load_int(out, index * 8) + 1, out, index * 8)
        for index in f.range(0, self.reserved // 8):
            f.store_scalar(f.load_int(f["scratch"], index * 8) + 1, f["scratch"], index * 8)
        if self.together:
            intrinsics.add_shared(f, arrived, 1)
            for _ in f.until(lambda: intrinsics.load_shared(f, arrived) >= 2):
                intrinsics.pause(f)


class Counting:
    """A table of kernels that count their units."""

    def __init__(self, threads: int, *kernels: Count) -> None:
        self.outs = [np.zeros(k.units, np.int64) for k in kernels]
        self.arrived = np.zeros(8, np.int64)
        actual = [
            Launch(k, [address(o), address(self.arrived)], [o, self.arrived])
            for k, o in zip(kernels, self.outs, strict=True)
        ]
        self.table = launched(actual, AVX2, threads, 0)
        self.runs = 0

    def run(self) -> None:
        self.arrived[:] = 0
        self.table.run(0, len(self.outs))
        self.runs += 1
        for out in self.outs:
            assert (out == self.runs).all(), (out, self.runs)


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadPool]:
    """A private pool; its threads end with the test."""
    own = ThreadPool()
    monkeypatch.setattr("irload.plan.backends.llvm.runtime.pool", own)
    yield own
    own._end(list(own._threads))
    assert not [t for t in own._threads if t.is_alive()]


def words(pool: ThreadPool) -> np.ndarray:
    """The words of the largest team that crowding.py reads and writes."""
    team = max(pool._free, key=lambda crew: len(crew.helpers)).team
    assert isinstance(team, KernelTeam)
    return team._words[CROWDING // 8 : CROWDING // 8 + 8]


def test_two_threads_run_parts_at_the_same_time(mine: ThreadPool) -> None:
    counting = Counting(2, Count(together=True))
    for k in range(50):
        if k:
            words(mine)[MOST // 8] = 2  # a busy machine may have reduced it
        counting.run()
    assert len(mine) == 1


@pytest.mark.parametrize("sparing", [False, True])
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_every_part_runs_once(mine: ThreadPool, monkeypatch: pytest.MonkeyPatch, threads: int, sparing: bool) -> None:
    """`sparing`: threads sleep instead of spinning, so that each wait needs a wake-up."""
    monkeypatch.setattr("irload.plan.backends.llvm.runtime.exceeds_quota", lambda threads: sparing)
    counting = Counting(threads, *(Count(units=n) for n in (2, 3, 24, 1, 100)))
    for _ in range(1000 if threads == 2 else 200):
        counting.run()


def test_helpers_that_never_start_delay_nothing(mine: ThreadPool, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(KernelTeam, "help", lambda self, number: release.wait())
    counting = Counting(3, Count(), Count())
    try:
        for _ in range(20):
            counting.run()
        assert len(mine) == 2
    finally:
        release.set()


def test_tables_of_other_numbers_of_threads_share_a_team(mine: ThreadPool) -> None:
    """A helper that one table does not invite touches neither its parts nor its scratch memory."""
    many, few = Counting(7, Count(units=70)), Counting(2, Count(units=40, reserved=8192))
    guard = few.table.memory[0]
    for _ in range(300):
        many.run()
        few.run()
    assert len(mine._free) == 1
    assert guard.size == 2 * 8192
    assert guard.view(np.int64)[:1024].any()


def test_leaders_at_the_same_time(mine: ThreadPool) -> None:
    tables = [Counting(2 + k % 3, Count(), Count(units=5)) for k in range(6)]

    def lead(counting: Counting) -> None:
        for _ in range(100):
            counting.run()

    with ThreadPoolExecutor(6) as callers:
        list(callers.map(lead, tables))
    with_helpers = [crew for crew in mine._free if crew.helpers]
    assert sum(len(crew.helpers) for crew in with_helpers) + len(mine._idle) == len(mine)


def test_helpers_run_python_between_tables(mine: ThreadPool) -> None:
    counting, done = Counting(3, Count()), np.zeros(3)
    for k in range(1, 30):
        counting.run()
        mine.run([[(np.add, (done[j : j + 1], 1, done[j : j + 1]))] for j in range(3)])
        assert (done == k).all()
    assert len(mine) == 2


def test_an_exception_ends_the_helpers_but_not_the_pool(mine: ThreadPool, monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(2, Count(together=True))
    counting.run()
    with monkeypatch.context() as patch:
        patch.setattr("irload.plan.threads.other_processors", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            counting.run()
    assert len(mine) == 0
    assert not mine._free
    counting.run()
    assert len(mine) == 1


def test_a_leader_that_loses_time_uses_fewer_helpers(mine: ThreadPool) -> None:
    counting = Counting(4, *[Count()] * 3)
    counting.run()
    state = words(mine)
    for most in (3, 2, 1):
        state[DEBT // 8], state[RESUMED // 8] = LIMIT * 2, NEVER
        quiet = int(state[QUIET // 8])
        counting.run()
        assert state[MOST // 8] == most
        assert state[QUIET // 8] == max(SHORTEST_QUIET, 2 * quiet), "twice as long, as it follows soon"
        state[UNTIL // 8] = NEVER
    state[DEBT // 8] = LIMIT * 2
    counting.run()
    assert state[MOST // 8] == 1, "alone there is nothing to wait for"


def test_helpers_are_used_again_after_a_quiet_period(mine: ThreadPool) -> None:
    counting = Counting(2, Count())
    counting.run()
    state = words(mine)
    state[MOST // 8], state[UNTIL // 8], state[RESUMED // 8] = 1, NEVER, 5
    counting.run()
    assert (state[MOST // 8], state[RESUMED // 8]) == (1, 5)
    state[UNTIL // 8] = 0
    Counting(2, Count(together=True)).run()  # ends only if the helper that was not invited returns
    assert state[RESUMED // 8] > 5


def test_the_interpreter_may_end_while_a_thread_waits() -> None:
    """The code of the thread has to stay mapped."""
    program = (
        "import sys\n"
        "from irload.plan.backends.llvm import launching\n"
        "from irload.plan.threads import pool\n"
        "from irrun.main import main\n"
        "launching.TOGETHER_CYCLES = launching.SHARED_CYCLES = 0\n"
        "sys.argv = ['irrun', 'models/digits/model.xml', 'models/digits/digit_7_0.npy', '--threads', '2', '--json']\n"
        "code = main()\n"
        "print(len(pool), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    environment = {**os.environ, "IRLOAD_JIT": "auto"}
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
        assert (done.returncode, done.stderr) == (0, "1\n")

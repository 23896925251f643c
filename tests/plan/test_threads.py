"""The thread pool: parts run concurrently, undisturbed by errors, interrupts, forks and other callers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.plan.threads import ThreadCalls, ThreadPool, processors
from irload.system.portable import other_processors
from tests.harness.tiers import tiered
from tests.plan.nets import convolutions

ROOT = Path(__file__).parents[2]
HANGING = 1800
"""Seconds after which a process counts as hanging."""

SETUP = """
import os, signal, sys, threading, warnings
import numpy as np
import irload
from tests.plan.nets import convolutions

warnings.simplefilter("ignore")  # Python warns of forks beside threads: they are what this is about
compiled = irload.compile_model(convolutions(3, 128, 128, 128), 2)
x = np.random.default_rng(1).standard_normal((1, 3, 24, 24)).astype(np.float32)
expected = compiled(x)[0].copy()
assert "irload" in [thread.name for thread in threading.enumerate()]
"""

INTERRUPTED = """
from time import perf_counter
rng = np.random.default_rng(0)
shortest, caught = 1.0, 0
while caught < 40:
    start = perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.1, 0.9) * shortest)
        compiled(x)
        signal.setitimer(signal.ITIMER_REAL, 0)
        shortest = min(shortest, perf_counter() - start)  # one measurement could be far too long on a busy machine
    except KeyboardInterrupt:
        caught += 1
    assert np.array_equal(compiled(x)[0], expected)
print(caught)
"""

FORKED = """
def hammer():
    while not stop.is_set():
        compiled(x)

stop = threading.Event()
hammering = [threading.Thread(target=hammer) for _ in range(int(sys.argv[1]))]
for thread in hammering:
    thread.start()
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if not child:
        signal.alarm(900)
        same = all(np.array_equal(compiled(x)[0], expected) for _ in range(3))
        other = irload.compile_model(compiled.model, 3)(x)[0]
        os._exit(0 if same and np.allclose(other, expected, rtol=1e-4, atol=1e-4) else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in hammering:
    thread.join()
"""


def script(text: str, *words: str) -> str:
    """The output of a script, in a separate process."""
    done = subprocess.run(
        [sys.executable, "-c", SETUP + text, *words],
        capture_output=True,
        text=True,
        timeout=HANGING,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture
def mine() -> Iterator[ThreadPool]:
    """A private pool; its threads end with the test."""
    own = ThreadPool()
    yield own
    own._end(list(own._threads))


def part(*functions: Callable[[], object]) -> ThreadCalls:
    return [(function, ()) for function in functions]


def test_parts_run_at_the_same_time(mine: ThreadPool) -> None:
    together = threading.Barrier(3, timeout=HANGING)
    mine.run([part(together.wait)] * 3)  # a single thread would not pass it
    assert len(mine) == 2


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_exception_reaches_the_caller_when_no_part_is_running(mine: ThreadPool, failing: int) -> None:
    running: list[int] = []
    failed = threading.Event()

    def fail() -> None:
        failed.set()
        raise ZeroDivisionError("on purpose")

    def other() -> None:
        running.append(1)
        if threading.current_thread() is not threading.main_thread():
            failed.wait(HANGING)
        running.pop()

    for _ in range(5):
        failed.clear()
        with pytest.raises(ZeroDivisionError, match="on purpose"):
            mine.run([part(fail if k == failing else other) for k in range(3)])
        assert not running
    done: list[int] = []
    mine.run([part(lambda: done.append(1))] * 3)
    assert done == [1] * 3


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals go to threads on POSIX only")
def test_an_interrupt_leaves_when_no_part_is_running(mine: ThreadPool) -> None:
    main = threading.main_thread().ident
    assert main is not None
    written = np.zeros(1)
    waiting = threading.Event()

    def interrupt() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        waiting.wait(0.2)  # the caller now waits for this part
        written[:] += 1

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(5):
            with pytest.raises(KeyboardInterrupt):
                mine.run([part(), part(interrupt)])
            assert written[0] == 1
            written[:] = 0
    finally:
        signal.signal(signal.SIGINT, before)
    done: list[int] = []
    mine.run([part(lambda: done.append(1))] * 2)
    assert done == [1, 1]


def test_a_part_may_use_the_pool(mine: ThreadPool) -> None:
    done: list[int] = []

    def inner() -> None:
        mine.run([part(lambda: done.append(1))] * 3)

    mine.run([part(inner)] * 3)
    assert done == [1] * 9


def test_without_further_threads_the_caller_runs_all_parts(mine: ThreadPool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    who: list[str] = []
    mine.run([part(lambda: who.append(threading.current_thread().name))] * 3)
    assert who == [threading.current_thread().name] * 3
    assert len(mine) == 0


def test_callers_share_the_threads(mine: ThreadPool) -> None:
    sums = np.zeros((8, 3))

    def call(k: int) -> None:
        for _ in range(200):
            mine.run([[(np.add, (sums[k, j : j + 1], 1, sums[k, j : j + 1]))] for j in range(3)])

    with ThreadPoolExecutor(8) as callers:
        list(callers.map(call, range(8)))
    assert (sums == 200).all()
    assert len(mine) <= max(2, processors() - 1)


@pytest.mark.numpy_kernels
def test_plans_of_all_shapes_and_models_share_one_pool(mine: ThreadPool, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    monkeypatch.setattr(
        "irload.plan.backends.numpy.executable.pool", mine
    )  # the process's pool may have served other tests
    model = convolutions(3, 128, 128, size="?")
    first, second = irload.compile_model(model, 4), irload.compile_model(model, 3)
    for size in range(24, 32):
        x = np.ones((1, 3, size, size), np.float32)
        np.testing.assert_allclose(first(x)[0], second(x)[0], rtol=1e-4, atol=1e-5)
    alive = [t for t in threading.enumerate() if t.name == "irload" and t not in before]
    assert 0 < len(alive) == len(mine) <= max(3, processors() - 1)


def test_inferences_of_several_models_at_once_are_right() -> None:
    models = [irload.compile_model(convolutions(3, 128, 128 + k), threads) for k, threads in enumerate((2, 3, 4))]
    x = np.random.default_rng(1).standard_normal((1, 3, 24, 24)).astype(np.float32)
    alone = [compiled(x)[0].copy() for compiled in models]
    with ThreadPoolExecutor(6) as callers:
        outputs = list(callers.map(lambda k: models[k % 3](x)[0], range(tiered(12, 60))))
    for k, result in enumerate(outputs):  # each with a separate plan, whose sums BLAS may round differently
        np.testing.assert_allclose(result, alone[k % 3], rtol=0, atol=1e-4)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no interval timer")
def test_an_interrupted_inference_leaves_the_model_usable() -> None:
    text = "signal.signal(signal.SIGALRM, signal.default_int_handler)\n" + INTERRUPTED
    assert int(script(text)) == 40


@pytest.mark.one_in(2)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
@pytest.mark.parametrize("others", [0, 2])
def test_a_forked_child_can_infer(others: int) -> None:
    """Even while other threads of the parent are inferring."""
    forks = tiered(3, 8)
    assert script(FORKED, str(others), str(forks)).split() == ["0"] * forks


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report where threads run")
def test_threads_wake_on_other_processors_than_their_caller(mine: ThreadPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may wake them on the caller's processor, where they would alternate with it."""
    seen: list[set[int]] = []
    parts: list[ThreadCalls] = [[(int, ())], [(lambda: seen.append(os.sched_getaffinity(0)), ())]]
    allowed = sorted(os.sched_getaffinity(0))
    wanted = [{cpu} for cpu in allowed[:2]] + [set(allowed)]
    for others in wanted:
        monkeypatch.setattr("irload.plan.threads.other_processors", lambda others=others: frozenset(others))
        mine.run(parts)
    monkeypatch.setattr("irload.plan.threads.other_processors", frozenset)
    mine.run(parts)
    assert seen == [*wanted, set(allowed)], "without a list of processors the affinity is unchanged"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report where threads run")
def test_the_processors_other_than_the_callers() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        for cpu in sorted(allowed)[:3]:
            os.sched_setaffinity(0, {cpu})
            assert other_processors() == frozenset()
    finally:
        os.sched_setaffinity(0, allowed)
    assert other_processors() < allowed
    assert len(other_processors()) == len(allowed) - 1


HAMMERED = """
import random, signal
from irload.system.forks import Unforked
signal.signal(signal.SIGALRM, signal.default_int_handler)

def enter():
    while True:
        with unforked:
            pass

unforked, caught = Unforked(), 0
while caught < 20000:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(5e-6, 1e-4))
        enter()
    except KeyboardInterrupt:
        caught += 1
print(caught)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no interval timer")
def test_an_interrupt_while_forks_are_blocked_keeps_no_lock() -> None:
    """A Condition acquires its lock in Python, where Ctrl-C can leave it locked: the next inference would hang."""
    done = subprocess.run([sys.executable, "-c", HAMMERED], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.stdout.split() == ["20000"], done.stderr[-2000:]

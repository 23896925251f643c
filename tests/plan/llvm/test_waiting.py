"""Threads that stand by in machine code: what is handed over, when they return, and that nothing is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.plan.backends.llvm.kernel import Launch, address
from irload.plan.backends.llvm.runtime import Table
from irload.plan.backends.llvm.target import AVX2, _flags
from irload.plan.backends.llvm.waiting import Post
from irload.plan.threads import pool
from tests.plan.llvm.tiny import Fill

pytestmark = pytest.mark.skipif(not AVX2.flags <= _flags(), reason="this processor has no compiled kernels")

EVER = 1 << 60
"""Turns that no test lives to see."""


class Filling:
    """A table that fills an array with 5."""

    def __init__(self, threads: int = 1) -> None:
        self.out = np.zeros(64, np.float32)
        self.table = Table([Launch(Fill(5, units=64), [address(self.out)])], AVX2, threads, 0)

    @property
    def job(self) -> tuple[int, ...]:
        return self.table.job(0, 1, 0, 1)

    def filled(self) -> bool:
        """Whether it is full; empties it."""
        full = bool((self.out == 5).all())
        self.out[:] = 0
        return full


@contextmanager
def standing_by(post: Post) -> Generator[threading.Thread]:
    """Another thread at the post."""
    thread = threading.Thread(target=post.stand_by, daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        post.call(True)
        thread.join(10)
        assert not thread.is_alive()


def handed(post: Post, job: tuple[int, ...]) -> None:
    """Hand over as soon as the thread stands by."""
    until = time.monotonic() + 10
    while not post.hand_over(job):
        assert time.monotonic() < until
        time.sleep(0.001)
    post.finish()


def test_a_job_is_run_where_a_thread_stands_by() -> None:
    post, filling = Post(AVX2, EVER), Filling()
    assert not post.hand_over(filling.job)
    with standing_by(post):
        handed(post, filling.job)
        assert filling.filled()
    assert not post.hand_over(filling.job)
    assert not filling.filled()


def test_every_one_of_many_jobs_is_run_before_finish_returns() -> None:
    post, fillings = Post(AVX2, EVER), [Filling(), Filling()]
    with standing_by(post):
        for k in range(2000):
            handed(post, fillings[k % 2].job)
            assert fillings[k % 2].filled()
            assert not fillings[1 - k % 2].filled()


def test_a_thread_loses_its_patience() -> None:
    Post(AVX2, 10).stand_by()


def test_a_thread_that_is_called_before_it_stands_by_returns_at_once() -> None:
    post = Post(AVX2, EVER)
    post.call(True)
    post.stand_by()
    post.call(False)
    with standing_by(post) as thread:
        thread.join(0.05)
        assert thread.is_alive()


def test_the_pool_hands_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a run in common the other thread stands by, and takes the next one without Python."""
    taken: list[bool] = []
    hand_over = Post.hand_over

    def noted(self: Post, job: tuple[int, ...]) -> bool:
        taken.append(hand_over(self, job))
        return taken[-1]

    pool.forget()
    monkeypatch.setattr(Post, "hand_over", noted)
    monkeypatch.setattr(Post, "__init__", lambda self, target, init=Post.__init__: init(self, target, EVER))
    monkeypatch.setattr("irload.plan.backends.llvm.kernel.SHARED_CYCLES", 0)
    filling = Filling(threads=2)
    try:
        for _ in range(200):
            filling.table.run(0, 1)
            assert filling.filled()
        assert any(taken)
        pool.run([[], [(filling.out.fill, (5.0,))]])  # a part in Python, for a thread that would wait for ever
        assert filling.filled()
        assert len(pool) == 1
    finally:
        pool._end(list(pool._threads))
    assert len(pool) == 0

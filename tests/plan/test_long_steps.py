"""Time limits and Ctrl-C during planning and within long steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator

import numpy as np
import pytest

import irload
from irload.errors import LimitExceeded
from irload.ops.convolution import forward
from irload.plan.backends.llvm import executable as llvm_executable
from irload.plan.backends.llvm import library as libraries
from irload.plan.backends.llvm.cache import ObjectCache
from irload.plan.backends.llvm.target import AVX2, _flags
from irload.plan.backends.numpy import executable as numpy_executable
from irload.plan.backends.numpy.kernels import conv2d
from irload.plan.sanitizing import sanitizing
from irload.plan.threads import ThreadPool
from irload.safety.limits import Deadline, Limits, bounded, checkpoint
from tests.plan.graphs import Net
from tests.plan.llvm.tiny import Fill
from tests.plan.nets import convolutions

SHAPE = (1, 3, 24, 24)
compiled_kernels = pytest.mark.skipif(not AVX2.flags <= _flags(), reason="this processor has no compiled kernels")
pytest.importorskip("llvmlite")


@pytest.fixture(autouse=True)
def as_users_run(monkeypatch: pytest.MonkeyPatch, sanitized: None) -> Generator[None]:
    """Compiled kernels without the sanitizer, which runs kernel by kernel and checks no time limit."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    with sanitizing(False):
        yield


def image() -> np.ndarray:
    return np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)


class Counting:
    """A deadline that passes after the given number of checks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, limit: int = 1 << 30) -> None:
        self.looks, self.limit = 0, limit
        monkeypatch.setattr(Deadline, "check", self)

    def __call__(self) -> None:
        self.looks += 1
        if self.looks > self.limit:
            raise LimitExceeded("over", limit="wall_time")


@compiled_kernels
@pytest.mark.parametrize("threads", [1, 2])
def test_a_kernel_runs_in_parts(monkeypatch, threads):
    model, x = convolutions(3, 16, 8), image()
    expected = irload.compile_model(model, threads, jit=True)(x)[0]
    monkeypatch.setattr(llvm_executable, "LONG_STEP", 1)
    monkeypatch.setattr(llvm_executable, "LONGEST_PART", 50_000)
    split = irload.compile_model(model, threads, jit=True)
    deadline = Counting(monkeypatch)
    assert np.array_equal(split(x)[0], expected)
    assert deadline.looks > 8
    deadline.looks, deadline.limit = 0, 5
    with pytest.raises(LimitExceeded):
        split(x)


@compiled_kernels
def test_kernels_are_compiled_within_the_limit(tmp_path):
    library = libraries.Library(ObjectCache(tmp_path))
    with Deadline(Limits(wall_time=0)), pytest.raises(LimitExceeded, match="wall_time"):
        library.code(Fill(11), AVX2)
    assert not library.compiled
    library.code(Fill(11), AVX2)


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=compiled_kernels)])
def test_planning_respects_the_time_limit(jit):
    limits = Limits(wall_time=0)
    with pytest.raises(LimitExceeded, match="wall_time"):
        irload.compile_model(convolutions(3, 4), jit=jit, limits=limits)


@compiled_kernels
@pytest.mark.parametrize("operation", ["Add", "Multiply", "Divide", "Subtract"])
def test_scalars_share_code(operation):
    """Zeros, powers of two and infinities could be optimised by a compiler into other code."""
    scalars = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 0.1, 1e-40, 1e38, float("inf"), *np.linspace(1.1, 7.7, 30)]
    x = np.concatenate([image().ravel()[:60], [0.0, -0.0, np.inf, -np.inf]]).astype(np.float32)

    def results(jit: bool) -> list[np.ndarray]:
        net = Net()
        value = net.input(64)
        layers = [net.op(operation, value, net.constant(np.float32(s))) for s in scalars]
        return list(irload.compile_model(net.model(*layers), 1, jit=jit)(x).values())

    before = libraries.library.compiled + len(libraries.library._loaded)
    outputs = results(True)
    assert libraries.library.compiled + len(libraries.library._loaded) - before <= 8
    for one, other in zip(outputs, results(False), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("threads", [1, 2])
def test_numpy_checks_the_limit_between_calls(monkeypatch, threads):
    model, x = convolutions(3, 16, 8), image()
    expected = irload.compile_model(model, threads, jit=False, precise=True)(x)[0]
    monkeypatch.setattr(numpy_executable, "LONG_STEP", 1)
    monkeypatch.setattr(conv2d, "LARGEST_TILE", 500)
    split = irload.compile_model(model, threads, jit=False, precise=True)
    deadline = Counting(monkeypatch)
    np.testing.assert_allclose(split(x)[0], expected, rtol=1e-4, atol=1e-5)
    assert deadline.looks > 100
    deadline.looks, deadline.limit = 0, 40
    with pytest.raises(LimitExceeded):
        split(x)
    deadline.limit = 1 << 30
    np.testing.assert_allclose(split(x)[0], expected, rtol=1e-4, atol=1e-5)


def test_plain_convolutions_check_the_limit_between_blocks(monkeypatch):
    model, x = convolutions(3, 16, 8), image()
    plain = irload.compile_model(model, optimize=False)
    expected = plain(x)[0]
    monkeypatch.setattr(forward, "BLOCK", 300)
    deadline = Counting(monkeypatch)
    np.testing.assert_allclose(plain(x)[0], expected, rtol=1e-4, atol=1e-5)
    assert deadline.looks > 100
    deadline.looks, deadline.limit = 0, 50
    with pytest.raises(LimitExceeded):
        plain(x)


def test_stages_within_stages_end_with_the_first():
    checkpoint()
    with bounded(Limits(wall_time=0)):
        time.sleep(0.001)
        with bounded(Limits(wall_time=None)), pytest.raises(LimitExceeded):
            checkpoint()
    checkpoint()


def test_threads_stop_between_calls_when_another_fails():
    """An interrupted inference does not wait for the remaining work of other threads."""
    pool, begun, calls = ThreadPool(), threading.Event(), list[None]()

    def fail() -> None:
        begun.wait()
        raise KeyboardInterrupt

    def call() -> None:
        begun.set()
        calls.append(time.sleep(0.01))

    with pytest.raises(KeyboardInterrupt):
        pool.run([[(fail, ())], [(call, ())] * 30_000])
    assert len(calls) < 30_000

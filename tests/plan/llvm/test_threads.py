"""Compiled kernels with threads: forks, interruptions, concurrent requests, more threads than processors."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irload
from irload.batch import predict
from irload.plan.backends.llvm import library as libraries
from irload.plan.backends.llvm.cache import ObjectCache
from irload.plan.backends.llvm.runtime import KernelTable
from irload.plan.backends.llvm.target import AVX2, _flags
from irload.plan.threads import ThreadPool
from irload.system.machine import processors
from tests.plan.graphs import Net
from tests.plan.llvm.tiny import Fill, filled

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(not AVX2.flags <= _flags(), reason="this processor has no compiled kernels")

MODELS = Path(__file__).parents[3] / "models"


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")


def net(rows: int = 256) -> tuple[irload.Model, np.ndarray, np.ndarray]:
    """Products whose work several threads share: a model, an input, and the result."""
    network = Net()
    y = network.input(rows, 96)
    for _ in range(3):
        y = network.op("ReLU", network.op("MatMul", y, network.weights(96, 96), transpose_a=False, transpose_b=False))
    model = network.model(y)
    x = np.random.default_rng(1).standard_normal((rows, 96)).astype(np.float32)
    return model, x, irload.compile_model(model, optimize=False)(x)[0]


def close(actual: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("threads", [1, 2, processors() + 2, 4 * processors()])
def test_any_number_of_threads_terminates(threads: int) -> None:
    model, x, expected = net()
    compiled = irload.compile_model(model, threads, jit=True)
    for _ in range(20):
        close(compiled(x)[0], expected)
    assert filled(Fill(5, units=1000), threads).tolist() == [5] * 1000


@pytest.mark.parametrize("threads", [1, 3])
def test_requests_at_a_time(threads: int) -> None:
    model, x, expected = net()
    compiled = irload.compile_model(model, threads, jit=True)
    inputs = [x * k for k in range(1, 5)]  # ReLU preserves positive scales

    def work(k: int) -> None:
        for _ in range(10):
            close(compiled(inputs[k])[0], (k + 1) * expected)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def in_child(work) -> None:
    """Run `work` in a forked child, which is killed if it hangs."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(900)
            work()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_runs_and_compiles() -> None:
    model, x, expected = net()
    compiled = irload.compile_model(model, 2, jit=True)
    compiled(x)

    def work() -> None:
        close(compiled(x)[0], expected)
        assert filled(Fill(os.getpid()))[0] == os.getpid()  # not in any cache

    in_child(work)
    close(compiled(x)[0], expected)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_fork_while_others_compile_and_run() -> None:
    """Locks that another thread of the parent holds at that moment would never be released in the child."""
    model, x, expected = net(64)
    compiled = irload.compile_model(model, 2, jit=True)
    stop = threading.Event()

    def busy(first: int) -> None:
        k = first
        while not stop.is_set():
            filled(Fill(k, units=k % 7 + 1))
            compiled(x)
            k += 2

    threads = [threading.Thread(target=busy, args=(os.getpid() * 1000 + k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    try:
        for k in range(10):
            in_child(lambda k=k: (close(compiled(x)[0], expected), filled(Fill(-k - 1))))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_no_fork_happens_during_compilation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """LLVM has internal locks, which a child would inherit locked."""
    forked = threading.Event()
    compile_object = libraries.compile_object

    def compiling(*arguments: Any, **options: Any) -> bytes:
        thread.start()
        assert not forked.wait(0.2)
        return compile_object(*arguments, **options)

    def fork() -> None:
        subprocess.run(["true"], check=True, preexec_fn=lambda: None)
        forked.set()

    thread = threading.Thread(target=fork)
    monkeypatch.setattr(libraries, "compile_object", compiling)
    libraries.Library(ObjectCache(tmp_path)).code(Fill(3), AVX2)
    thread.join(900)
    assert forked.is_set()


def test_an_interrupted_run_leaves_all_usable() -> None:
    program = f"""
import os, signal, sys, threading, time
import numpy as np, irload
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.plan.llvm.test_threads import close, net
signal.signal(signal.SIGINT, signal.default_int_handler)  # which processes in the background are started without
model, x, expected = net(4096)
compiled = irload.compile_model(model, 2, jit=True)
compiled(x)
caught = 0
for k in range(10):
    timer = threading.Timer(0.01 + 0.002 * k, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        while True:
            compiled(x)
    except KeyboardInterrupt:
        caught += 1
    timer.join()
    close(compiled(x)[0], expected)
assert caught == 10
"""
    environment = {**os.environ, "IRLOAD_JIT": "auto"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, text=True, capture_output=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stderr


def test_batches_run_compiled_kernels() -> None:
    """Workers are separate processes; each loads the kernels from the cache."""
    images = [np.load(file) for file in sorted((MODELS / "digits").glob("digit_*.npy"))]
    expected = irload.compile_model(MODELS / "digits" / "model.xml", optimize=False)
    for workers in (0, 2):
        predictions = list(predict(MODELS / "digits" / "model.xml", images, workers=workers, jit=True))
        assert len(predictions) == len(images)
        by_input = {prediction.input: prediction.outputs for prediction in predictions}
        for k, image in enumerate(images):
            close(by_input[str(k)]["probabilities"], expected(image)[0])


def test_waiting_threads_do_not_keep_a_deleted_model(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    pool = ThreadPool()  # its threads have run no job yet
    monkeypatch.setattr("irload.plan.backends.llvm.runtime.pool", pool)
    request.addfinalizer(lambda: pool._end(list(pool._threads)))
    gc.collect()
    gc.disable()
    request.addfinalizer(gc.enable)
    before = {id(o) for o in gc.get_objects() if isinstance(o, KernelTable)}
    model, x, _ = net()
    compiled = irload.compile_model(model, 2, jit=True)
    compiled(x)
    del compiled
    assert not [o for o in gc.get_objects() if isinstance(o, KernelTable) and id(o) not in before]

"""Plans at work: nothing is allocated, threads change nothing, requests do not disturb each other."""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import irload
from irload.run import PLANS
from tests.plan.nets import convolutions

MODELS = Path(__file__).parents[2] / "models"


def image(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_steady_state_allocates_nothing_but_outputs(threads):
    compiled = irload.compile_model(convolutions(3, 64, 64, 16), threads)
    x = image(1, 3, 24, 24)
    compiled(x)
    tracemalloc.start()
    try:
        for _ in range(3):
            result = compiled(x)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(10):
            result = compiled(x)
        _, peak = tracemalloc.get_traced_memory()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    output = result[0].nbytes
    between = 64 * 24 * 24 * 4  # what one value between two steps would take
    assert peak - before < output + between // 2
    assert after - before < output // 2


def test_any_number_of_threads_gives_the_same():
    model = convolutions(3, 40, 40, 8)
    x = image(1, 3, 24, 24)
    plain = irload.compile_model(model, 1, optimize=False)(x)[0]
    for threads in (1, 2, 3):
        found = irload.compile_model(model, threads)(x)[0]
        np.testing.assert_allclose(found, plain, rtol=1e-4, atol=1e-5 * np.abs(plain).max())


@pytest.mark.parametrize("threads", [1, 2])
def test_requests_at_the_same_time_do_not_disturb_each_other(threads):
    compiled = irload.compile_model(convolutions(3, 32, 4), threads)
    images = [image(1, 3, 24, 24, seed=k) for k in range(12)]
    alone = [compiled(x)[0].copy() for x in images]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda x: compiled(x)[0], images * 4))
    finally:
        sys.setswitchinterval(interval)
    for k, result in enumerate(found):
        np.testing.assert_array_equal(result, alone[k % 12])


def test_blas_has_its_threads_back_whoever_ends_last():
    compiled = irload.compile_model(convolutions(3, 32, 4), 1)
    x = image(1, 3, 24, 24)
    with threadpool_limits(2, "blas"):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: compiled(x), range(40)))
        assert {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"} <= {min(2, os.cpu_count() or 1)}


def test_results_are_the_callers_own():
    compiled = irload.compile_model(convolutions(3, 4), 1)
    first = compiled(image(1, 3, 24, 24, seed=1))[0]
    kept = first.copy()
    second = compiled(image(1, 3, 24, 24, seed=2))[0]
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)


def test_each_shape_has_a_plan_and_old_ones_are_let_go():
    model = convolutions(3, 4, size="?")
    compiled = irload.compile_model(model, 1)
    plain = irload.compile_model(model, 1, optimize=False)
    for size in (8, 9, 8, *range(10, 10 + 2 * PLANS)):
        x = image(1, 3, size, size)
        np.testing.assert_allclose(compiled(x)[0], plain(x)[0], rtol=1e-5, atol=1e-6)
    assert len(compiled._plans) == PLANS
    assert len(compiled._pools) <= PLANS


def test_precise_plans_avoid_winograd():
    model = convolutions(32, 32, 32)
    x = image(1, 32, 24, 24)
    kernels = [{s.kernel for s in irload.compile_model(model, 1, precise=p).profile(x, 1)} for p in (False, True)]
    assert "winograd" in kernels[0]
    assert "winograd" not in kernels[1]
    plain = irload.compile_model(model, 1, optimize=False)(x)[0].astype(np.float64)
    errors = [np.abs(irload.compile_model(model, 1, precise=p)(x)[0] - plain).max() for p in (False, True)]
    assert errors[1] < errors[0]


@pytest.mark.parametrize(("value", "threads"), [("1", 1), ("3", 3), ("", None)])
def test_the_environment_says_how_many_threads(monkeypatch, value, threads):
    monkeypatch.setenv("IRLOAD_NUM_THREADS", value)
    compiled = irload.compile_model(MODELS / "digits" / "model.xml")
    assert compiled.threads == threads if threads else compiled.threads >= 1
    assert irload.compile_model(MODELS / "digits" / "model.xml", 2).threads == 2


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", " "])
def test_no_other_number_of_threads_is_taken(monkeypatch, value):
    monkeypatch.setenv("IRLOAD_NUM_THREADS", value)
    with pytest.raises(irload.InputInvalid, match="positive integer"):
        irload.compile_model(MODELS / "digits" / "model.xml")

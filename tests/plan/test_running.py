"""Running plans: no allocations, same results for any number of threads, independent requests."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import irload
from irload.ops.matrix.inverse import Inverse
from irload.plan.sanitizing import sanitizing
from irload.runtime.plans import PLANS
from irload.system.blas import single_threaded_blas
from models.ir import Graph, save
from tests.plan.graphs import Net
from tests.plan.nets import convolutions

MODELS = Path(__file__).parents[2] / "models"


def image(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_steady_state_allocates_only_outputs(threads):
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
    between = 64 * 24 * 24 * 4  # the size of one intermediate value
    assert peak - before < output + between // 2
    assert after - before < output // 2


def test_any_number_of_threads_gives_the_same():
    model = convolutions(3, 40, 40, 8)
    x = image(1, 3, 24, 24)
    plain = irload.compile_model(model, 1, optimize=False)(x)[0]
    for threads in (1, 2, 3):
        output = irload.compile_model(model, threads)(x)[0]
        np.testing.assert_allclose(output, plain, rtol=1e-4, atol=1e-5 * np.abs(plain).max())


@pytest.mark.parametrize("threads", [1, 2])
def test_requests_at_the_same_time_do_not_disturb_each_other(threads):
    compiled = irload.compile_model(convolutions(3, 32, 4), threads)
    images = [image(1, 3, 24, 24, seed=k) for k in range(12)]
    alone = [compiled(x)[0].copy() for x in images]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            outputs = list(pool.map(lambda x: compiled(x)[0], images * 4))
    finally:
        sys.setswitchinterval(interval)
    for k, result in enumerate(outputs):
        np.testing.assert_array_equal(result, alone[k % 12])


def test_blas_threads_are_restored_after_the_last_run():
    compiled = irload.compile_model(convolutions(3, 32, 4), 1)
    x = image(1, 3, 24, 24)
    with threadpool_limits(2, "blas"):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: compiled(x), range(40)))
        assert {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"} <= {min(2, os.cpu_count() or 1)}


@pytest.mark.parametrize("optimize", [True, False])
def test_products_outside_of_kernels_use_one_blas_thread(optimize, monkeypatch):
    counts: list[int] = []

    def recording(operation, x):
        counts.extend(library.get_num_threads() for library in single_threaded_blas.libraries)
        return x

    monkeypatch.setattr(Inverse, "compute", recording)
    net = Net()
    model = net.model(net.op("Inverse", net.input(2, 2), version="opset14", adjoint=False))
    with sanitizing(False), threadpool_limits(2, "blas"):
        irload.compile_model(model, 1, optimize=optimize)(np.eye(2, dtype=np.float32))
    assert counts
    assert set(counts) == {1}


def test_results_belong_to_the_caller():
    compiled = irload.compile_model(convolutions(3, 4), 1)
    first = compiled(image(1, 3, 24, 24, seed=1))[0]
    kept = first.copy()
    second = compiled(image(1, 3, 24, 24, seed=2))[0]
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("optimize", [True, False])
def test_an_output_that_is_returned_twice_is_two_arrays(optimize):
    net = Net()
    y = net.op("Exp", net.input(2, 3))
    model = net.model(y, y)
    first, second = irload.compile_model(model, optimize=optimize)(np.zeros((2, 3), np.float32)).values()
    first[...] = 7
    np.testing.assert_array_equal(second, 1)


def test_each_shape_has_a_plan_and_old_ones_are_evicted():
    model = convolutions(3, 4, size="?")
    compiled = irload.compile_model(model, 1)
    plain = irload.compile_model(model, 1, optimize=False)
    for size in (8, 9, 8, *range(10, 10 + 2 * PLANS)):
        x = image(1, 3, size, size)
        np.testing.assert_allclose(compiled(x)[0], plain(x)[0], rtol=1e-5, atol=1e-6)
    assert len(compiled._pools) == PLANS


@pytest.mark.numpy_kernels
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
def test_the_environment_sets_the_number_of_threads(monkeypatch, value, threads):
    monkeypatch.setenv("IRLOAD_NUM_THREADS", value)
    compiled = irload.compile_model(MODELS / "digits" / "model.xml")
    assert compiled.threads == threads if threads else compiled.threads >= 1
    assert irload.compile_model(MODELS / "digits" / "model.xml", 2).threads == 2


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", " ", "²", "٢", "9" * 5000])
def test_other_numbers_of_threads_are_rejected(monkeypatch, value):
    monkeypatch.setenv("IRLOAD_NUM_THREADS", value)
    with pytest.raises(irload.InputInvalid, match="positive integer"):
        irload.compile_model(MODELS / "digits" / "model.xml")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy])
def test_copies_of_a_compiled_model_run_side_by_side(again):
    compiled = irload.compile_model(convolutions(3, 8), 2, precise=True)
    x = image(1, 3, 24, 24)
    expected = compiled(x)[0]
    other = again(compiled)
    assert (other.threads, other.optimize, other._options.precise) == (2, True, True)
    np.testing.assert_array_equal(other(x)[0], expected)
    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(lambda c: c(x)[0], [compiled, other] * 10):
            np.testing.assert_array_equal(result, expected)


def test_a_copy_has_separate_variables():
    compiled = irload.compile_model(MODELS / "state" / "model.xml")
    one = np.ones(compiled.inputs[0].shape, np.float32)
    compiled(one)
    other = copy.deepcopy(compiled)
    np.testing.assert_array_equal(compiled(one)[0], other(one)[0])
    compiled(one)
    assert (compiled(one)[0] != other(one)[0]).any()


def test_pickling_a_compiled_model_names_the_alternative():
    compiled = irload.compile_model(convolutions(3, 4))
    with pytest.raises(TypeError, match="send the path of the model instead"):
        pickle.dumps(compiled)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("data", "kernel"), [((1, 3, 3, 3), (1, 3, 3, 3)), ((2, 1, 3, 1), (1, 1, 3, 1))])
def test_a_convolution_with_bias_whose_block_is_one_element(data, kernel, threads, tmp_path):
    g = Graph()
    x, dims = g.parameter("x", "f32", data), (data[0], 1, 1, 1)
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    y = g.layer("Convolution", [x, g.constant(image(*kernel))], [("f32", dims)], attributes=attributes)[0]
    g.result(g.layer("Add", [y, g.constant(image(1, 1, 1, 1, seed=2))], [("f32", dims)])[0])
    save(g, tmp_path, "one")
    fast, plain = (irload.compile_model(tmp_path / "model.xml", threads, optimize=o) for o in (True, False))
    np.testing.assert_allclose(fast(image(*data))[0], plain(image(*data))[0], rtol=1e-5)


def test_a_scalar_with_equal_bounds_is_a_constant(tmp_path):
    g = Graph()
    x = g.parameter("x", "f32", ("?", 3))
    places = g.layer("NonZero", [x], [("i64", (2, "?"))], version="opset3", attributes={"output_type": "i64"})[0]
    sizes = g.layer("ShapeOf", [places], [("i32", (2,))], version="opset3", attributes={"output_type": "i32"})[0]
    ends = [g.constant(np.array([n])) for n in (0, 1, 1)]
    masks = {"begin_mask": "0", "end_mask": "0", "shrink_axis_mask": "1"}
    rank = g.layer("StridedSlice", [sizes, *ends], [("i32", ())], attributes=masks)[0]
    rank = g.layer("Convert", [rank], [("f32", ())], attributes={"destination_type": "f32"})[0]
    g.result(g.layer("Multiply", [x, rank], [("f32", ("?", 3))])[0])
    save(g, tmp_path, "rank")
    np.testing.assert_array_equal(irload.compile_model(tmp_path / "model.xml")(image(4, 3))[0], 2 * image(4, 3))

"""A model from the cache gives the same results and has the same interface as a compiled one."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.model_cache import models_folder
from irload.model_cache.cached import _OF_WHOLE, CachedModel
from tests.model_cache.conftest import image, write
from tests.plan.compressed_weights import Weights
from tests.plan.graphs import Net


def cached(path: Path, **options) -> CachedModel:
    """The model from the cache, after it was compiled once."""
    assert type(irload.compile_model(path, **options)) is irload.CompiledModel
    compiled = irload.compile_model(path, **options)
    assert type(compiled) is CachedModel
    return compiled


@pytest.mark.parametrize("threads", [1, 3])
def test_it_gives_the_same(model, threads):
    own = irload.compile_model(model, threads, cache=False)
    compiled = cached(model, threads=threads)
    for seed in range(3):
        x = image(seed)
        assert np.array_equal(compiled(x)[0], own(x)[0])
        assert np.array_equal(compiled({"image": x})["y"], own(x)["y"])


def test_compressed_weights(tmp_path):
    """Packed codes, scales and zero points are stored, not the widened weights."""
    net = Net()
    weights = Weights(et.u4, 512, 384, 3, zero=True).of(net)
    irload.save_model(
        net.model(net.op("MatMul", net.input(2, 384), weights, transpose_a=False, transpose_b=True)),
        tmp_path / "model.xml",
    )
    own = irload.compile_model(tmp_path / "model.xml", 1, cache=False)
    compiled = cached(tmp_path / "model.xml", threads=1)
    x = np.random.default_rng(0).standard_normal((2, 384)).astype(np.float32)
    np.testing.assert_array_equal(compiled(x)[0], own(x)[0])
    assert sum(file.stat().st_size for file in models_folder().folder.rglob("*") if file.is_file()) < 512 * 384


def test_it_runs_without_its_graph(model, monkeypatch):
    compiled = cached(model, threads=2)

    def refused(*_, **__):
        raise AssertionError("the file was read")

    monkeypatch.setattr("irload.loading.read_model", refused)
    (port,) = compiled.inputs
    assert (port.any_name, str(port.type), port.node.name, port.place_name) == (
        "image",
        "f32[2,3,9,9]",
        "x",
        "parameter_0",
    )
    assert compiled.input("x") is port
    assert compiled.output().any_name == "y"
    assert (compiled.threads, compiled.differences) == (2, [])
    compiled.prepare(image())
    assert compiled(image())[compiled.output("y")].shape == (2, 8, 9, 9)
    request = compiled.create_infer_request()
    assert request.infer(image())[0].shape == (2, 8, 9, 9)


def test_inputs_are_checked(model):
    compiled = cached(model)
    with pytest.raises(irload.InputInvalid, match=r"shape \[1,3,9,9\]; the model takes \[2,3,9,9\]"):
        compiled(image(batch=1))
    with pytest.raises(irload.InputInvalid, match="no input 'z'"):
        compiled({"z": image()})
    with pytest.raises(irload.InputInvalid, match="no output named 'z'"):
        compiled.output("z")


def test_other_attributes_read_the_model(model):
    compiled, own = cached(model, threads=1), irload.compile_model(model, 1, cache=False)
    x = image()
    before = compiled.inputs[0]
    assert repr(compiled) == repr(own)
    assert compiled.explain() == own.explain()
    assert [s.kernel for s in compiled.profile(x)] == [s.kernel for s in own.profile(x)]
    assert [name for name, _ in compiled.intermediates(x)] == [name for name, _ in own.intermediates(x)]
    assert compiled.warnings == own.warnings
    assert compiled.model.file == str(model)
    assert compiled.create_infer_request().query_state() == []
    for port in (before, compiled.model.inputs[0], compiled.inputs[0]):
        assert np.array_equal(compiled({port: x})[compiled.model.outputs[0]], own(x)[0])
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        compiled.colour  # noqa: B018


def test_checking_for_an_attribute_does_not_read_the_file(model, monkeypatch):
    compiled = cached(model)

    def refused(*_, **__):
        raise AssertionError("the file was read")

    monkeypatch.setattr("irload.model_cache.CacheEntry._whole", refused)
    monkeypatch.setattr(compiled, "_read", refused)
    assert not hasattr(compiled, "no_such_thing")
    assert not hasattr(compiled, "_repr_mimebundle_")
    model.with_suffix(".bin").chmod(0o600)
    with pytest.raises(AttributeError, match="'CachedModel' object has no attribute 'colour'"):
        compiled.colour  # noqa: B018


def test_it_has_the_attributes_of_a_compiled_model(model):
    own = irload.compile_model(model, cache=False)
    compiled = cached(model)
    assert set(vars(own)) - set(vars(compiled)) == _OF_WHOLE
    assert all(hasattr(compiled, name) for name in vars(own))


def test_copies_have_separate_plans(model):
    compiled = cached(model)
    for each in (copy.copy(compiled), copy.deepcopy(compiled)):
        assert np.array_equal(each(image())[0], compiled(image())[0])
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(compiled)


def test_results_belong_to_the_caller(model):
    compiled = cached(model)
    first = compiled(image())[0]
    kept = first.copy()
    compiled(image(1))
    assert np.array_equal(first, kept)
    first.fill(0)
    assert np.array_equal(compiled(image())[0], kept)


def test_many_requests_at_once(model):
    compiled = cached(model, threads=1)
    wanted = [irload.compile_model(model, 1, cache=False)(image(k))[0] for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            results = pool.map(lambda k: compiled.create_infer_request().infer(image(k))[0], range(8))
            assert all(np.array_equal(a, b) for a, b in zip(results, wanted, strict=True))


def test_it_works_in_another_process(model):
    irload.compile_model(model, 2)
    program = (
        "import sys, numpy as np, irload\n"
        "compiled = irload.compile_model(sys.argv[1], 2)\n"
        "print(type(compiled).__name__, 'lxml' in sys.modules, 'llvmlite' in sys.modules)\n"
        "x = np.random.default_rng(0).random((2, 3, 9, 9), np.float32)\n"
        "print(compiled(x)[0].tobytes().hex())\n"
    )
    command = [sys.executable, "-c", program, str(model)]
    subprocess.run(command, check=True, capture_output=True)  # compiles the interpreter of kernel tables
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said, numbers = done.stdout.split("\n")[:2]
    assert said == "CachedModel False False"
    assert numbers == irload.compile_model(model, 2, cache=False)(image())[0].tobytes().hex()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_runs_it(model):
    compiled = cached(model, threads=2)
    wanted = compiled(image())[0]
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(compiled(image())[0], wanted) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_changed_file_is_rejected(model):
    compiled = cached(model)
    before = compiled(image())[0]
    write(model.parent, scale=2)
    assert np.array_equal(compiled(image())[0], before)
    with pytest.raises(irload.ReadError, match="has changed since it was compiled; compile it again"):
        compiled.explain()
    assert np.allclose(irload.compile_model(model)(image())[0], 2 * before, atol=1e-4)


def test_limits_hold(model):
    cached(model)
    limits = irload.Limits(peak_bytes=1000)
    with pytest.raises(irload.LimitExceeded):
        irload.compile_model(model, limits=limits)
    assert models_folder().contents().count == 1
    late = irload.compile_model(model)
    late.limits = irload.Limits(wall_time=0.0)
    with pytest.raises(irload.LimitExceeded):
        late(image())


@pytest.mark.parametrize("use", ["call", "request", "whole"])
def test_it_is_freed_with_the_last_reference(model, use):
    compiled = cached(model)
    gc.collect()
    gc.disable()
    try:
        if use == "call":
            compiled(image())
        elif use == "request":
            compiled.create_infer_request().infer(image())
        else:
            compiled.profile(image(), rounds=1)
        alive = [weakref.ref(compiled), *map(weakref.ref, compiled._replicas._idle)]
        del compiled
        assert [one() for one in alive] == [None] * len(alive)
    finally:
        gc.enable()

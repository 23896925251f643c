"""Compiled models are freed with the last reference, without garbage collection."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from weakref import ref

import numpy as np
import pytest

import irload
from irload.plan.ir.constant import Constant
from tests.plan.nets import convolutions

SHAPE = (1, 3, 24, 24)
USES: dict[str, Callable[[irload.CompiledModel, np.ndarray], object]] = {
    "none": lambda compiled, x: None,
    "call": lambda compiled, x: compiled(x),
    "request": lambda compiled, x: compiled.create_infer_request().infer(x),
    "state": lambda compiled, x: compiled.create_infer_request().query_state(),
    "profile": lambda compiled, x: compiled.profile(x, rounds=1),
    "layers": lambda compiled, x: [name for name, _ in compiled.intermediates(x)],
    "explain": lambda compiled, x: compiled.explain(),
    "copy": lambda compiled, x: copy.copy(compiled)(x),
}
OPTIONS = {
    "plain": {"cache": False, "optimize": False},
    "numpy": {"cache": False, "jit": False},
    "compiled": {"cache": False},
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory):
    file = tmp_path_factory.mktemp("freed") / "model.xml"
    irload.save_model(convolutions(3, 8, 8, 8), file)
    return file


@pytest.fixture
def no_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("options", OPTIONS)
def test_it_is_freed_with_the_last_reference(path, no_collection, options, use):
    x = np.ones(SHAPE, np.float32)
    before = {id(o) for o in gc.get_objects() if isinstance(o, Constant)}
    compiled = irload.compile_model(path, **OPTIONS[options])
    USES[use](compiled, x)
    plans = [ref(compiled), *(ref(p) for pool in compiled.__dict__.get("_pools", {}).values() for p in pool)]
    del compiled
    assert [plan() for plan in plans] == [None] * len(plans)
    assert not [o for o in gc.get_objects() if isinstance(o, Constant) and id(o) not in before]

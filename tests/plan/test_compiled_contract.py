"""A compiled back end needs only its provider in the registry, through which the rest of irload uses it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irload
from irload.core.tensor import Array
from irload.diagnostics.benchmark import benchmark
from irload.diagnostics.config import config
from irload.diagnostics.user_cache import cache_usage, clear_cache
from irload.model_cache.cached import CachedModel
from irload.options import Options
from irload.plan.backends import registry
from irload.plan.backends.base import Executable, SharedData
from irload.plan.backends.compiled import (
    CompiledBackend,
    NotStorable,
    Peaks,
    StorableExecutable,
    StoredExecutable,
    StoredInvalid,
)
from irload.plan.ir.program import Step
from irload.plan.ir.steps import SoftmaxStep
from irload.plan.memory.memory import Memory
from irload.plan.sanitizing import sanitizing
from irload.safety.cache_store import CacheStore
from irload.safety.private_folder import PrivateFolder
from tests.plan.graphs import Net
from tests.plan.toy import Toy, ToyExecutable

pytest.importorskip("xxhash")


class StorableToy(ToyExecutable):
    """An executable of softmaxes of rows, stored as the offsets and shapes of their operands."""

    def __init__(self, steps: Sequence[Step], memory: Memory) -> None:
        super().__init__(steps, memory)
        self._operands = [(memory.array(s.inputs[0]), memory.array(s.output)) for s in steps]

    def stored(self, arena: Array) -> StoredExecutable:
        start = arena.ctypes.data
        rows = [(x.ctypes.data - start, out.ctypes.data - start, x.shape) for x, out in self._operands]
        if not all(0 <= place < arena.size for *places, _ in rows for place in places):
            raise NotStorable
        return StoredExecutable(json.dumps(rows).encode(), [b"unused"], 6)


class RestoredToy:
    """The executable that `restore` returns."""

    def __init__(self, code: bytes) -> None:
        self.rows = json.loads(code)

    def bind(self, arena: Array, constants: Array, threads: int) -> RestoredToy:
        assert constants[:6].tobytes() == b"unused"
        self.operands = [
            [np.ndarray(tuple(shape), np.float32, arena, place) for place in places] for *places, shape in self.rows
        ]
        return self

    def run(self, context: Any) -> None:
        for x, out in self.operands:
            powers = np.exp(x - x.max(1, keepdims=True))
            out[...] = powers / powers.sum(1, keepdims=True)


class CompiledToy(Toy):
    """A back end that runs softmaxes of rows."""

    identity = "toy 1"
    precision = "bf16"

    def __init__(self) -> None:
        super().__init__()
        self.restored = 0
        self.valid = True

    def supports(self, step: Step) -> bool:
        return isinstance(step, SoftmaxStep) and super().supports(step)

    def compile(self, steps: Sequence[Step], memory: Memory, options: Options, shared: SharedData) -> Executable:
        return StorableToy(steps, memory)

    def peaks(self, threads: int) -> Peaks:
        return Peaks(1.0, 1.0, 1.0, 1.0)

    def restore(self, code: bytes) -> RestoredToy:
        if not self.valid:
            raise StoredInvalid("made by another toy")
        self.restored += 1
        return RestoredToy(code)


class ToyProvider:
    """Provides the back end unless options exclude it."""

    def __init__(self, toy: CompiledToy | None, store: PrivateFolder) -> None:
        self.toy = toy
        self.store = store

    def backend(self, options: Options) -> CompiledBackend | None:
        if self.toy is None and options.jit:
            raise irload.Unsupported("this machine has no toys")
        return None if options.jit is False else self.toy

    def status(self) -> str:
        return "none: no toys" if self.toy is None else "toy 1"

    def stores(self) -> list[CacheStore]:
        return [CacheStore("compiled kernels", self.store)]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Replaces the compiled back ends; None stands for one that this machine does not support."""
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("IRLOAD_MODEL_CACHE", raising=False)

    def replace(*toys: CompiledToy | None) -> None:
        store = PrivateFolder("toys", ".toy", 1000)
        monkeypatch.setattr(registry, "providers", [ToyProvider(toy, store) for toy in toys])

    with sanitizing(False):  # plans that check themselves are not cached
        yield replace


@pytest.fixture
def model(tmp_path: Path) -> Path:
    net = Net()
    irload.save_model(net.model(net.op("SoftMax", net.input(2, 5), axis=1)), tmp_path / "model.xml")
    return tmp_path / "model.xml"


def rows() -> Array:
    return np.random.default_rng(0).standard_normal((2, 5)).astype(np.float32)


def test_a_plan_is_stored_and_restored(offered, model: Path) -> None:
    toy = CompiledToy()
    offered(toy)
    first, second = irload.compile_model(model), irload.compile_model(model)
    assert not isinstance(first, CachedModel)
    assert isinstance(second, CachedModel)
    assert toy.restored == 1
    np.testing.assert_allclose(second(rows())[0], first(rows())[0], rtol=1e-6)


def test_another_generator_and_invalid_code_are_compiled_again(offered, model: Path) -> None:
    toy = CompiledToy()
    offered(toy)
    irload.compile_model(model)
    assert isinstance(irload.compile_model(model), CachedModel)
    toy.identity = "toy 2"
    assert not isinstance(irload.compile_model(model), CachedModel)
    assert isinstance(irload.compile_model(model), CachedModel)
    toy.valid = False
    assert not isinstance(irload.compile_model(model), CachedModel)


def test_an_executable_that_is_not_storable(offered, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: StorableToy, arena: Array) -> StoredExecutable:
        raise NotStorable

    monkeypatch.setattr(StorableToy, "stored", refused)
    offered(CompiledToy())
    irload.compile_model(model)
    assert not isinstance(irload.compile_model(model), CachedModel)
    assert not isinstance(ToyExecutable([], Memory.__new__(Memory)), StorableExecutable)


def test_a_requirement_is_met_by_any_back_end(offered) -> None:
    toy = CompiledToy()
    offered(None, toy)
    assert registry.compiled_backend(Options(jit=True)) is toy
    assert [b.name for b in registry.backends(Options(jit=False))] == ["numpy"]
    offered(None, None)
    assert registry.compiled_backend(Options()) is None
    with pytest.raises(irload.Unsupported, match="this machine has no toys"):
        registry.compiled_backend(Options(jit=True))


def test_profiles_and_benchmarks(offered, model: Path) -> None:
    offered(CompiledToy())
    compiled = irload.compile_model(model, cache=False)
    assert [step.reach for step in compiled.profile(rows(), rounds=1)] == [1.0]
    measured = benchmark(irload.read_model(model), [rows()], runs=1, warm_up=0)
    assert measured.sides[0].precision == "bf16"
    offered()
    assert [step.reach for step in irload.compile_model(model).profile(rows(), rounds=1)] == [None]


def test_the_configuration_and_the_users_cache(offered) -> None:
    offered(CompiledToy())
    PrivateFolder("toys", ".toy", 1000).write("one", [b"x" * 100])
    assert config()["compiled kernels"] == "toy 1"
    assert config()["kernel cache"] == "0.0 of 0 MiB, 1 files"
    usage = {entry.what: entry.nbytes for entry in cache_usage()}
    assert usage == {"compiled kernels": 100, "compiled models": 0, "tuning": 0}
    assert clear_cache()[0].nbytes == 100
    assert cache_usage()[0].count == 0

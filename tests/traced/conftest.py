"""Fixtures: without the sanitizer, under which every shape is planned alone; an empty folder of plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from irload import model_cache
from irload.plan.backends.llvm.target import host_target
from irload.plan.sanitizing import sanitizing
from irload.plan.traced import planning
from irload.safety.private_folder import PrivateFolder


@pytest.fixture(autouse=True)
def unsanitized() -> Iterator[None]:
    """Switch the sanitizer off."""
    with sanitizing(False):
        yield


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PrivateFolder:
    """Compiled kernels, and an empty folder of plans. All tests share the compiled kernels."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    monkeypatch.delenv("IRLOAD_MODEL_CACHE", raising=False)
    if host_target() is None:
        pytest.skip("kernels are not written for this machine")
    plans = PrivateFolder("", ".plan", folder=tmp_path / "plans")
    monkeypatch.setattr(model_cache, "models_folder", lambda: plans)
    return plans


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes reading and planning an error."""

    def refuse() -> None:
        def refused(*_: object, **__: object) -> None:
            raise AssertionError("the model was read or planned")

        monkeypatch.setattr("irload.loading.read_opened", refused)
        monkeypatch.setattr("irload.runtime.families.schedule_graph", refused)
        monkeypatch.setattr("irload.runtime.plans.schedule_graph", refused)
        monkeypatch.setattr(planning, "lower", refused)

    return refuse

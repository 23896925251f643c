"""Fixtures for several tests of compiled kernels."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.fuzz.programs.thresholds import all_in_bf16


@pytest.fixture(autouse=True)
def small_work_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make threads share all kernels, however short their run is."""
    monkeypatch.setattr("irload.plan.backends.llvm.launching.TOGETHER_CYCLES", 0)


@pytest.fixture
def everything_pays() -> Generator[None]:
    """Compute even the smallest products, attention and recurrent networks in bf16."""
    with all_in_bf16():
        yield

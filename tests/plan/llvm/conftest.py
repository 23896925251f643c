"""What several tests of compiled kernels start from."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.fuzz.programs.thresholds import all_in_bf16


@pytest.fixture(autouse=True)
def small_work_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have threads share kernels that are worth it for themselves, however short the run of them is."""
    monkeypatch.setattr("irload.plan.backends.llvm.launching.TOGETHER_CYCLES", 0)


@pytest.fixture
def everything_pays() -> Generator[None]:
    """Have the smallest products, attention and recurrent networks computed in bf16, too."""
    with all_in_bf16():
        yield

"""What several tests of compiled kernels start from."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def small_work_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have threads share kernels that are worth it for themselves, however short the run of them is."""
    monkeypatch.setattr("irload.plan.backends.llvm.runtime.TOGETHER_CYCLES", 0)


@pytest.fixture
def everything_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the smallest products, attention and recurrent networks computed in bf16, too."""
    for module in ("kernels.bf16_selection", "overwriting", "storage"):
        monkeypatch.setattr(f"irload.plan.backends.llvm.{module}.pays_in_bf16", lambda *_: True)
    monkeypatch.setattr("irload.plan.backends.llvm.kernels.attention.pays_in_tiles", lambda _: True)
    for least in ("LEAST_WIDTH", "LEAST_PRODUCTS"):
        monkeypatch.setattr(f"irload.plan.backends.llvm.kernels.bf16_recurrent_selection.{least}", 0)

"""Random chains of quantized layers, in integers and by `compute`; `make fuzz-plan` runs more of them."""

from __future__ import annotations

import pytest

pytest.importorskip("llvmlite")

from irload.plan.backends.llvm.kernels import quantized
from tests.plan.llvm.quantized_chain import difference


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(40))
def test_random_chains_are_as_in_floats(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "avx2")
    monkeypatch.setattr(quantized, "fits_winograd", lambda *_: False)  # its rounding may select another level
    assert difference(seed) is None

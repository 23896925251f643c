"""precision="auto" multiplies in bf16 only if it is faster according to the processor's peak rates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irload.options import Options
from irload.plan.backends.llvm import available, peaks
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.peaks import Peaks
from irload.plan.backends.llvm.target import AMX, AVX2, AVX512, AVX512_BF16, Target

RATES = {
    "Zen 4": Peaks(1e11, 3e10, 2e11, 4e11),
    "Sapphire Rapids without AMX": Peaks(2e11, 3e10, 2e11, 4e11),
    "slightly faster": Peaks(1e11, 3e10, 1.4e11, 4e11),
}


@pytest.fixture
def rate(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Peaks:
    return rated(monkeypatch, request.param)


def rated(monkeypatch: pytest.MonkeyPatch, name: str) -> Peaks:
    """Let the processor have the rates of this name."""
    peak = RATES[name]
    monkeypatch.setattr(peaks, "rate", lambda target, threads, kind: peak.of(kind))
    return peak


def chosen(target: Target, monkeypatch: pytest.MonkeyPatch, precision: str, **options: bool) -> str:
    """The precision of the back end for this target."""
    monkeypatch.setattr(available, "compiled_target", lambda options: target)
    backend = available.LlvmProvider().backend(Options(precision=precision, **options))  # type: ignore[arg-type]
    assert isinstance(backend, LlvmBackend)
    return backend.precision


@pytest.mark.parametrize(
    ("rate", "expected"),
    [("Zen 4", "bf16"), ("Sapphire Rapids without AMX", "f32"), ("slightly faster", "f32")],
    indirect=["rate"],
)
def test_the_measured_rates_decide(rate: Peaks, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(AVX512_BF16, monkeypatch, "auto") == expected
    assert chosen(AVX512_BF16, monkeypatch, "bf16") == "bf16"
    assert chosen(AVX512_BF16, monkeypatch, "f32") == "f32"
    assert chosen(AVX512_BF16, monkeypatch, "auto", precise=True) == "f32"


@pytest.mark.parametrize("precision", ["auto", "bf16", "f32"])
def test_models_with_variables_store_f32(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` multiplies by constant weights in bf16, and keeps caches in f32, which grow in place."""
    rated(monkeypatch, "Zen 4")
    monkeypatch.setattr(available, "compiled_target", lambda options: AVX512_BF16)
    backend = available.LlvmProvider().backend(Options(precision=precision, variables=True))
    assert isinstance(backend, LlvmBackend)
    assert (backend.bf16, backend.bf16_weights) == (precision == "bf16", precision == "auto")


def test_nothing_is_measured_where_the_instructions_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "rate", lambda *_: pytest.fail("measured"))
    assert chosen(AMX, monkeypatch, "auto") == "bf16"
    assert chosen(AVX512, monkeypatch, "auto") == "f32"
    assert chosen(AVX2, monkeypatch, "auto") == "f32"


def test_kernels_follow_the_choice() -> None:
    """Kernel selections read the precision from the resolved options; `auto` alone would select bf16."""
    options, target = Options(precision="auto"), replace(AVX512_BF16, emulated=True)
    assert LlvmBackend(target, bf16=False).resolved(options).precision == "f32"
    assert LlvmBackend(target, bf16=True).resolved(options).precision == "bf16"
    backends = (LlvmBackend(target), LlvmBackend(target, bf16=True), LlvmBackend(target, bf16_weights=True))
    assert len({backend.identity for backend in backends}) == 3

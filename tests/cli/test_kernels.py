"""--jit, --no-jit and --precision: which kernels run; unavailable ones are a usage error."""

from __future__ import annotations

import pytest

from irload.plan.backends.llvm import available
from irload.plan.backends.llvm.target import AVX2, host_target
from irrun.main import OK, UNSUPPORTED, USAGE
from tests.cli.conftest import MODELS

DIGITS = MODELS / "digits" / "model.xml"
SEVEN = MODELS / "digits" / "digit_7_0.npy"


@pytest.fixture
def switch(monkeypatch):
    """Sets IRLOAD_JIT."""

    def turn(value: str) -> None:
        monkeypatch.setenv("IRLOAD_JIT", value)

    return turn


@pytest.fixture
def jit(switch):
    """Compiled kernels, if this machine supports them."""
    pytest.importorskip("llvmlite")
    switch("auto")
    if host_target() is None:
        pytest.skip("this processor has no compiled kernels")


@pytest.mark.usefixtures("jit")
def test_compiled_kernels_are_the_default_if_available(irrun):
    default, asked, refused = (
        irrun(DIGITS, SEVEN, *words, "--explain", "--json") for words in ([], ["--jit"], ["--no-jit"])
    )
    assert default.code == asked.code == refused.code == OK
    assert "compiled" in default.json["plan"]
    assert "compiled" in asked.json["plan"]
    assert "compiled" not in refused.json["plan"]


def test_unavailable_kernels_are_a_usage_error(irrun, switch):
    switch("off")
    done = irrun(DIGITS, SEVEN, "--jit")
    assert done.code == USAGE
    assert (
        "--jit requires compiled kernels, which IRLOAD_JIT=off disables; unset IRLOAD_JIT or omit --jit\n" in done.err
    )
    assert irrun(DIGITS, SEVEN).code == OK
    assert irrun("bench", DIGITS, SEVEN, "--jit", "--runs", 1).code == USAGE
    assert irrun("compare", "jit", DIGITS, SEVEN).code == USAGE


def test_a_target_that_does_not_exist_is_an_error_of_usage(irrun, switch):
    switch("avx1024")
    done = irrun(DIGITS, SEVEN)
    assert done.code == USAGE
    assert "avx2" in done.err
    assert "avx1024" in done.err


def test_precision_needs_a_processor_for_it(irrun, switch, monkeypatch):
    switch("auto")
    monkeypatch.setattr(available, "host_target", lambda: AVX2)
    monkeypatch.setattr(available, "_missing", lambda target: None)
    done = irrun(DIGITS, SEVEN, "--precision", "bf16")
    assert done.code == UNSUPPORTED
    assert "AMX" in done.err
    assert irrun(DIGITS, SEVEN, "--precision", "f64").code == USAGE
    done = irrun(DIGITS, SEVEN, "--precision", "bf16", "--no-jit")
    assert done.code == USAGE
    assert "which --no-jit disables" in done.err


@pytest.mark.parametrize("words", [("--jit",), ("--precision", "bf16")])
def test_without_llvmlite_demanding_its_kernels_is_unsupported(irrun, switch, monkeypatch, words):
    switch("auto")
    monkeypatch.setattr(available, "host_target", lambda: AVX2)
    monkeypatch.setattr(available, "is_installed", lambda: False)
    available._missing.cache_clear()
    try:
        done = irrun(DIGITS, SEVEN, *words)
        assert done.code == irrun("bench", DIGITS, SEVEN, "--runs", 1, *words).code == UNSUPPORTED
        assert irrun(DIGITS, SEVEN).code == OK
    finally:
        available._missing.cache_clear()
    assert "pip install 'irload[jit]'" in done.err
    assert "IRLOAD_JIT" not in done.err


def test_batches_take_the_same_options(irrun, switch, tmp_path):
    switch("off")
    words = ("batch", DIGITS, SEVEN, "-o", tmp_path / "out")
    assert irrun(*words, "--jit").code == USAGE
    assert irrun(*words, "--no-jit", "--force").code == OK


@pytest.mark.usefixtures("jit")
def test_the_ways_to_compare(irrun):
    for words in (("jit", DIGITS), (DIGITS, "jit"), ("plain", "jit", "--model", DIGITS)):
        done = irrun("compare", *words[:2], SEVEN, *words[2:])
        assert done.code == OK
        assert done.out.startswith("PASSED")

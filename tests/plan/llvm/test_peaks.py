"""The peaks of the machine: measured once, cached, and related to the times of a profile."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.plan.backends.llvm import available, peaks, target
from irload.plan.backends.llvm.dot import PAIRS, TILES
from irload.plan.backends.llvm.peaks import Peaks
from irload.plan.backends.llvm.target import AVX2, AVX512_BF16, Target, _flags
from tests.plan.compressed_weights import Weights
from tests.plan.graphs import Net
from tests.plan.llvm.harness import BF16, DOTS

KINDS = "f32", "copies", "bf16", "int8"

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(not AVX2.flags <= _flags(), reason="this processor has no compiled kernels")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path))
    peaks.rate.cache_clear()
    yield tmp_path
    peaks.rate.cache_clear()


def measuring(monkeypatch: pytest.MonkeyPatch, most: Peaks) -> None:
    """Let measurements return these peaks."""
    values = dict(zip(KINDS, (most.flops, most.nbytes, most.bf16, most.int8), strict=True))
    monkeypatch.setattr(peaks, "measure", lambda target, threads, kind: values[kind])


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("chosen", "threads"), [(AVX2, 1), (AVX2, 2), *((entry, 1) for entry in BF16)])
def test_measured_peaks_are_plausible(chosen: Target, threads: int) -> None:
    """The bounds are wide: the machine may be busy."""
    measured = peaks.peaks(chosen, threads)
    assert 1e8 < measured.flops < 1e13
    assert 1e7 < measured.nbytes < 1e13
    assert 1e8 < measured.int8 < 1e14
    assert 1e7 < measured.bf16 < 1e14 if chosen.bf16 else measured.bf16 == 0


def test_pairs_count_twice() -> None:
    assert peaks.MultiplyLoop(16, PAIRS).operations == 2 * peaks.MultiplyLoop(16).operations
    assert peaks.MultiplyLoop(16, TILES).operations == peaks.UNITS * peaks.TILE_TURNS * 4 * 2 * 16 * 16 * 32


def test_it_is_measured_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, str]] = []

    def measured(target: object, threads: int, kind: str) -> float:
        asked.append((threads, kind))
        return threads * 1e9

    monkeypatch.setattr(peaks, "measure", measured)
    for _ in range(2):
        assert peaks.peaks(AVX2, 2) == Peaks(2e9, 2e9, 0, 2e9)
        peaks.rate.cache_clear()
    assert peaks.rate(AVX2, 3, "f32") == 3e9
    assert asked == [(2, "f32"), (2, "copies"), (2, "int8"), (3, "f32")]
    assert len(json.loads((folder / "peaks.json").read_text(encoding="utf-8"))) == 4


def test_the_choice_of_a_precision_copies_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allocating the memory for a copy takes longer than all products."""
    asked: list[str] = []

    def measured(target: object, threads: int, kind: str) -> float:
        asked.append(kind)
        return 1e9

    monkeypatch.setattr(peaks, "measure", measured)
    assert not available.gains_by_bf16(replace(AVX512_BF16, emulated=False))
    assert sorted(asked) == ["bf16", "f32"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"a": 1}',
        "{",
        '{"KEY": [1, 1, 1]}',
        '{"KEY": "1"}',
        '{"KEY": 0}',
        '{"KEY": NaN}',
        '{"KEY": 1e999}',
        '{"KEY": 1' + 400 * "0" + "}",
        '{"KEY": -1}',
    ],
)
def test_a_damaged_file_is_ignored(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    measuring(monkeypatch, Peaks(1e9, 5e9, 0, 4e9))
    key = f"{peaks.processor()}, avx2, 1 threads, f32"
    (folder / "peaks.json").write_text(text.replace("KEY", key), encoding="utf-8")
    assert peaks.peaks(AVX2, 1) == Peaks(1e9, 5e9, 0, 4e9)


def test_a_profile_relates_steps_to_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "avx2")
    measuring(monkeypatch, Peaks(1e12, 1e12, 2e12, 3e12))
    net = Net()
    x = net.input(64, 64)
    model = net.model(
        net.op("SoftMax", net.op("MatMul", x, net.weights(64, 64), transpose_a=False, transpose_b=False), axis=1)
    )
    array = np.ones((64, 64), np.float32)
    product, softmax = irload.compile_model(model, 1).profile(array)
    assert product.flops == 2 * 64**3
    assert product.reach == pytest.approx(min(product.flops / product.seconds / 1e12, 1))
    assert softmax.reach == pytest.approx(min(softmax.nbytes / softmax.seconds / 1e12, 1))
    assert all(step.reach is None for step in irload.compile_model(model, 1, jit=False).profile(array))
    assert replace(product, reach=None).rate == product.rate


def test_products_in_bf16_have_a_separate_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(available, "host_target", lambda: DOTS)
    monkeypatch.setattr(target, "host_target", lambda: DOTS)
    measuring(monkeypatch, Peaks(1, 1e12, 1e15, 1))
    net = Net()
    model = net.model(net.op("MatMul", net.input(64, 64), net.weights(64, 64), transpose_a=False, transpose_b=False))
    *_, product = irload.compile_model(model, 1, precision="bf16").profile(np.ones((64, 64), np.float32))
    assert product.kernel == "Product"
    assert product.reach == pytest.approx(product.flops / product.seconds / 1e15)


def test_products_in_int8_have_a_separate_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, Peaks(1, 1e12, 1, 1e15))
    monkeypatch.setenv("IRLOAD_JIT", "avx2")
    net = Net()
    weights = Weights(et.u4, 64, 64, 1).of(net)
    model = net.model(net.op("MatMul", net.input(64, 64), weights, transpose_a=False, transpose_b=True))
    *_, product = irload.compile_model(model, 1, precision="auto").profile(np.ones((64, 64), np.float32))
    assert product.kernel == "Product"
    assert product.reach == pytest.approx(product.flops / product.seconds / 1e15)

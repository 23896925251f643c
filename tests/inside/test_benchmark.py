"""benchmark counts inferences, of alternating sides and of several requests; times are not tested here."""

from __future__ import annotations

import time

import numpy as np
import pytest

import irload
from irload.diagnostics import benchmark as module
from irload.diagnostics.benchmark import Contender, benchmark
from tests.cli.conftest import MODELS

DIGITS = MODELS / "digits" / "model.xml"
SEVEN = np.load(MODELS / "digits" / "digit_7_0.npy")


def test_runs_are_counted():
    measured = benchmark(irload.read_model(DIGITS), [SEVEN], runs=7, warm_up=0, threads=1)
    (side,) = measured.sides
    assert (side.name, len(side.latencies), measured.threads, measured.ratio(50)) == ("irload", 7, 1, None)
    assert 0 < sum(side.latencies) <= side.wall
    assert side.throughput == 7 / side.wall


def test_requests_run_at_a_time():
    measured = benchmark(irload.read_model(DIGITS), [SEVEN], runs=3, warm_up=0, requests=2)
    assert len(measured.sides[0].latencies) == 6


def test_seconds_are_kept():
    measured = benchmark(irload.read_model(DIGITS), [SEVEN], seconds=0.05, warm_up=0)
    assert measured.sides[0].wall >= 0.05
    assert measured.sides[0].latencies


@pytest.mark.parametrize("requests", [1, 2])
def test_openvino_takes_turns(monkeypatch, requests):
    monkeypatch.setattr(module, "TURN", 0.01)
    model = irload.read_model(DIGITS)
    measured = benchmark(model, [SEVEN], seconds=0.03, warm_up=0, against="openvino", requests=requests, threads=1)
    assert [s.name for s in measured.sides] == ["irload", "openvino"]
    assert all(s.wall >= 0.03 for s in measured.sides)
    assert measured.ratio(50) == measured.sides[1].percentile(50) / measured.sides[0].percentile(50)
    counted = benchmark(model, [SEVEN], runs=2, warm_up=0, against="openvino", requests=requests)
    assert [len(s.latencies) for s in counted.sides] == [2 * requests] * 2


def test_each_request_runs_equally_often(monkeypatch):
    counts = [0, 0]

    def run(k: int, seconds: float) -> None:
        time.sleep(seconds)
        counts[k] += 1

    ways = [lambda: run(0, 0), lambda: run(1, 0.03)]
    monkeypatch.setattr(module, "TURN", 0.01)
    monkeypatch.setattr(module, "_openvino", lambda *_: (ways, "f32", "f32"))
    measured = benchmark(irload.read_model(DIGITS), [SEVEN], runs=5, warm_up=0, against="openvino", requests=2)
    assert [len(s.latencies) for s in measured.sides] == [10, 10]
    assert counts[1] == module.LEAST + 5  # LEAST times to warm up


def test_variables_are_reset(monkeypatch):
    model = irload.read_model(MODELS / "state" / "model.xml")
    seen: list[dict[str, object]] = []
    infer = irload.InferRequest.infer

    def spy(self, inputs):
        seen.append(dict(self.variables))
        return infer(self, inputs)

    monkeypatch.setattr(irload.InferRequest, "infer", spy)
    benchmark(model, [np.ones((1, 3), np.float32)], runs=3, warm_up=0)
    assert len(seen) >= 3
    assert not any(seen)


def test_percentiles():
    side = Contender("irload", 0, 0, None, [0.4, 0.1, 0.2, 0.3, 0.5], 1.5)
    assert side.percentile(50) == pytest.approx(0.3)
    assert side.percentile(95) == pytest.approx(0.48)
    assert side.mean == pytest.approx(0.3)
    assert side.throughput == pytest.approx(5 / 1.5)


@pytest.mark.parametrize("options", [{"requests": 0}, {"seconds": 0}, {"runs": 0}, {"against": "x"}])
def test_invalid_benchmark_options_are_rejected(options):
    with pytest.raises(irload.InputInvalid):
        benchmark(irload.read_model(DIGITS), [SEVEN], **options)


@pytest.mark.parametrize("requests", [1, 2])
def test_errors_of_inferences_are_raised(requests):
    with pytest.raises(irload.InputInvalid):
        benchmark(irload.read_model(DIGITS), [SEVEN[:, :, 1:]], requests=requests, warm_up=0, runs=1)


def test_an_error_in_a_thread_is_raised(monkeypatch):
    calls = iter(range(100))
    infer = irload.InferRequest.infer

    def fail(self, inputs):
        if next(calls) > 1:
            raise irload.ExecutionError("failed")
        return infer(self, inputs)

    monkeypatch.setattr(irload.InferRequest, "infer", fail)
    with pytest.raises(irload.ExecutionError, match="failed"):
        benchmark(irload.read_model(DIGITS), [SEVEN], requests=2, warm_up=0, runs=2)

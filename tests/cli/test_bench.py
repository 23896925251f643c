"""irrun bench: the table, the histogram, the document."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from irload.diagnostics.benchmark import Contender
from irrun.bench import BINS, _histogram, _seconds
from irrun.main import OK, USAGE
from tests.cli.conftest import MODELS

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "bench.schema.json").read_text(encoding="utf-8"))
DIGITS = MODELS / "digits" / "model.xml"
SEVEN = MODELS / "digits" / "digit_7_0.npy"


@pytest.mark.parametrize("more", [(), ("--against", "openvino"), ("--requests", 2)])
def test_the_document(irrun, more):
    done = irrun("bench", DIGITS, SEVEN, "--runs", 4, "--warm-up", 0, "--threads", 1, "--json", *more)
    assert done.code == OK
    document = done.json
    Draft202012Validator(SCHEMA).validate(document)
    for side in document["sides"]:
        assert sum(b["count"] for b in side["histogram"]) == side["inferences"] == 4 * document["requests"]
        latency = side["latency"]
        assert latency["min"] <= latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["max"]
    assert (document["ratio"] is not None) == ("openvino" in more)
    assert document["inputs"] == [{"name": "image", "type": "f32", "shape": [1, 1, 8, 8]}]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("more", [(), ("--against", "openvino")])
def test_the_table(irrun, monkeypatch, width, more):
    monkeypatch.setenv("COLUMNS", str(width))
    done = irrun("bench", DIGITS, "--shape", "[2,1,8,8]", "--seconds", 0.02, "--warm-up", 0, *more)
    assert done.code == OK
    assert "image f32[2,1,8,8]" in done.out
    lines = done.out.splitlines()[1:]  # the first one has a path of any length
    assert max(map(len, lines)) <= width
    rows = [
        line
        for line in lines
        if line.startswith(("compile", "first", "memory", "latency", "p50", "inferences", "per "))
    ]
    assert [row[:15].strip() for row in rows] == [
        *("compile", "first inference", "memory", "latency min", "latency p50", "latency p90", "latency p95"),
        *("latency p99", "latency max", "latency mean", "p50, 95 % low", "p50, 95 % high", "inferences", "per second"),
    ]
    assert all(
        re.fullmatch(r".{15}( +[\d,.]+( s| ms| µs| [KMG]B| bytes|))+( +[\d,.]+ ×)?", row.rstrip()) for row in rows
    ), rows
    assert done.out.count("×") == (11 if more else 0)
    assert ("openvino / irload" in done.out) == bool(more)


def test_numbers_that_are_large_or_unknown(irrun, monkeypatch, capsys):
    from irload.diagnostics.benchmark import Benchmark
    from irrun.bench import _render, _side

    monkeypatch.setenv("COLUMNS", "60")
    side = Contender("irload", 0.001, 0.002, None, [1e-5] * 123_456 + [2e-5], 1.0)
    document = {"model": "m.xml", "inputs": [], "read_seconds": 1.0, "sides": [_side(side)], "streams": []}
    _render(document, Benchmark([side], 1, 1))
    out = capsys.readouterr().out
    assert re.search(r"^memory +–$", out, re.MULTILINE)
    assert re.search(r"^per second +123,457$", out, re.MULTILINE)
    assert max(map(len, out.splitlines())) <= 60


def test_dynamic_inputs_need_a_shape(irrun):
    done = irrun("bench", DIGITS)
    assert done.code == USAGE
    assert "--shape" in done.err


def test_histograms():
    def side(*latencies: float) -> Contender:
        return Contender("irload", 0, 0, None, list(latencies), 1)

    assert _histogram(side(1, 1, 1)) == [{"from": 1, "to": 1, "count": 3}]
    even = _histogram(side(*range(100, 201)))
    assert len(even) == BINS
    assert sum(b["count"] for b in even) == 101
    assert even[1]["to"] - even[1]["from"] == pytest.approx(even[2]["to"] - even[2]["from"])
    far = _histogram(side(*(10.0**k for k in range(5))))
    assert far[1]["to"] / far[1]["from"] == pytest.approx(far[2]["to"] / far[2]["from"])
    assert sum(b["count"] for b in far) == 5


def test_seconds_for_people():
    assert [_seconds(s) for s in (2.5, 0.01234, 1.5e-6)] == ["2.5 s", "12.34 ms", "1.5 µs"]


def bench(irrun, *more):
    return irrun("bench", DIGITS, SEVEN, "--runs", 30, "--warm-up", 0, "--threads", 2, *more)


def test_throughput_over_streams(irrun):
    document = bench(irrun, "--streams", "1,2,3", "--json").json
    Draft202012Validator(SCHEMA).validate(document)
    assert [(row["requests"], row["threads"]) for row in document["streams"]] == [(1, 2), (2, 1), (3, 1)]
    assert all(row["sides"][0]["throughput"] > 0 for row in document["streams"])
    shown = bench(irrun, "--streams", "2").out
    assert re.search(r"concurrency +threads per request +irload per second +irload p50", shown)
    assert bench(irrun, "--streams", "2,0").code == USAGE


def test_a_baseline(irrun, tmp_path):
    done = bench(irrun, "--json")
    before = done.json
    for factor, verdict in ((10, "slower"), (0.1, "faster"), (1, None)):
        side = json.loads(done.out)["sides"][0]
        latency = {name: value / factor for name, value in side["latency"].items()}
        spread = 1e3 if verdict is None else 1
        interval = [latency["p50"] / factor / spread, latency["p50"] * spread]
        saved = before | {
            "sides": [side | {"latency": latency, "interval": interval if verdict is None else [latency["p50"]] * 2}]
        }
        (tmp_path / "before.json").write_text(json.dumps(saved))
        now = bench(irrun, "--baseline", tmp_path / "before.json", "--json").json
        Draft202012Validator(SCHEMA).validate(now)
        assert now["baseline"]["differing"] == []
        low, high = now["baseline"]["interval"]
        assert low <= now["baseline"]["ratio"] <= high
        shown = bench(irrun, "--baseline", tmp_path / "before.json").out
        assert (verdict or "no significant change") in shown


def test_a_baseline_of_other_settings(irrun, tmp_path):
    (tmp_path / "before.json").write_text(bench(irrun, "--json").out)
    done = bench(irrun, "--baseline", tmp_path / "before.json", "--requests", 2)
    assert "the baseline has other requests; times are not comparable" in done.err


@pytest.mark.parametrize(
    "content", ["", "{}", '{"sides": [{"name": "irload", "latency": {"p50": 0}, "interval": [0, 0]}]}']
)
def test_an_invalid_baseline_is_a_usage_error(irrun, tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    done = bench(irrun, "--baseline", tmp_path / "x.json")
    assert done.code == USAGE
    assert "x.json is not a document of irrun bench --json" in done.err


def test_the_interval_of_the_median():
    even = Contender("irload", 0, 0, None, [float(k % 10) for k in range(2000)], 1)
    low, high = even.interval()
    assert low <= even.percentile(50) <= high
    assert high - low < 1
    drifting = Contender("irload", 0, 0, None, [float(k) for k in range(2000)], 1)
    low, high = drifting.interval()
    assert high - low > 500  # because blocks differ, for any number of latencies
    assert Contender("irload", 0, 0, None, [3.0], 1).interval() == (3.0, 3.0)


def test_the_default_of_openvino_is_named(irrun, monkeypatch, capsys):
    ov = pytest.importorskip("openvino")
    default = ov.Core().get_property("CPU", "INFERENCE_PRECISION_HINT").to_string()
    document = bench(irrun, "--against", "openvino", "--json").json
    ours, theirs = document["sides"]
    assert (ours["precision"], ours["default_precision"]) == ("f32", None)
    assert (theirs["precision"], theirs["default_precision"]) == ("f32", default)
    for side in document["sides"]:
        side["default_precision"] = None if side is ours else "bf16"
    from irload.diagnostics.benchmark import Benchmark
    from irrun.bench import _render

    _render(document, Benchmark([], 1, 1))
    shown = " ".join(capsys.readouterr().out.split())  # wrapped at the width of the terminal
    assert "openvino computes in f32 here, as irload does; its default on this processor is bf16" in shown

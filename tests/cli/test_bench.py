"""irrun bench: the table, the histogram, the document."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from irload.benchmark import Side
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
    rows = [line for line in lines if line.startswith(("compile", "first", "memory", "latency", "inferences", "per "))]
    assert [row[:15].strip() for row in rows] == [
        *("compile", "first inference", "memory", "latency min", "latency p50", "latency p90", "latency p95"),
        *("latency p99", "latency max", "latency mean", "inferences", "per second"),
    ]
    assert all(
        re.fullmatch(r".{15}( +[\d,.]+( s| ms| µs| [KMG]B| bytes|))+( +[\d,.]+ ×)?", row.rstrip()) for row in rows
    ), rows
    assert done.out.count("×") == (9 if more else 0)
    assert ("openvino / irload" in done.out) == bool(more)


def test_numbers_that_are_large_or_unknown(irrun, monkeypatch, capsys):
    from irload.benchmark import Benchmark
    from irrun.bench import _render, _side

    monkeypatch.setenv("COLUMNS", "60")
    side = Side("irload", 0.001, 0.002, None, [1e-5] * 123_456 + [2e-5], 1.0)
    document = {"model": "m.xml", "inputs": [], "read_seconds": 1.0, "sides": [_side(side)]}
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
    def side(*latencies: float) -> Side:
        return Side("irload", 0, 0, None, list(latencies), 1)

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

"""irrun bench: the table, the histogram, the document."""

from __future__ import annotations

import json
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


def test_the_table(irrun, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # what does not fit is wrapped
    done = irrun("bench", DIGITS, "--shape", "[2,1,8,8]", "--seconds", 0.02, "--warm-up", 0, "--against", "openvino")
    assert done.code == OK
    assert "image f32[2,1,8,8]" in done.out
    assert all(word in done.out for word in ("p99", "per second", "ratio", "openvino", "█"))


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

"""A small campaign of mutants, saved regressions, and the fuzzer itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.bases import models
from tests.fuzz.campaign import ROOT, environment, outcomes
from tests.fuzz.make import HARMLESS, LIE, SPOILT, make
from tests.fuzz.play import FAILURES, PRESERVED, REPORTED
from tests.fuzz.report import Tally
from tests.harness.tiers import tiered
from tests.ops.families import load_families

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.xml"))
COUNT, SEED = tiered(40, 500), 2026


def in_a_new_process(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment(), cwd=ROOT)


def test_mutants(tmp_path):
    tally = Tally(SEED)
    for outcome in outcomes(COUNT, SEED, tmp_path):
        tally.add(outcome)
    assert tally.failures == [], tally.text(tmp_path)
    assert tally.count == COUNT
    assert tally.outcomes[LIE, REPORTED] == tally.to_dict()["lies"] > COUNT / 10
    assert tally.outcomes[HARMLESS, PRESERVED] > COUNT / 10
    assert tally.outcomes[SPOILT, "ran"] > COUNT / 25
    assert len(tally.errors) >= 4
    assert len(tally.also) >= 4


def test_regressions():
    assert REGRESSIONS
    done = in_a_new_process("-m", "tests.fuzz.replay", *map(str, REGRESSIONS))
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(verdicts) == len(REGRESSIONS), done.stderr
    assert [f for f in verdicts if f["outcome"] in FAILURES] == []
    assert done.returncode == 0


def test_the_same_seed_makes_the_same():
    load_families()
    for index in range(40):
        one, two = make(3, index), make(3, index)
        assert (one.xml, one.blob, one.family, one.done) == (two.xml, two.blob, two.family, two.done)
    assert make(3, 0).xml != make(4, 0).xml


def test_models_are_of_all_kinds():
    text = b"".join(m.xml for m in models()).decode()
    assert len(models()) > 15
    for type in (
        *("Loop", "If", "TensorIterator", "ReadValue", "FakeQuantize", "NonMaxSuppression", "StringTensorPack"),
        *("Convolution", "LSTMSequence", "Interpolate", "TopK", "ScaledDotProductAttention", "ConvolutionBackpropData"),
    ):
        assert f'type="{type}"' in text
    for element in ("u8", "i8", "u4", "i4", "f16", "bf16", "string", "boolean"):
        assert f'"{element}"' in text


TASKS = """
import json, os, sys, time
from pathlib import Path
from tests.fuzz.confine import Confinement, confine
def dies(folder, stage): stage("here"); os.abort()
def hangs(folder, stage):
    while True: pass
def sleeps(folder, stage): time.sleep(3600)
def leaves(folder, stage): (folder / "new.txt").touch(); return {"outcome": "ran"}
def eats(folder, stage): confine(); return {"outcome": "ran", "data": len(bytearray(1 << 33))}
def writes(folder, stage): confine(); (folder / "model.bin").write_bytes(b"x"); return {"outcome": "ran"}
def runs(folder, stage): return {"outcome": "ran"}
long, busy, idle = (Confinement(Path(sys.argv[1]), *times) for times in ((), (1, 900), (1, 3)))
tasks = {dies: long, hangs: busy, sleeps: idle, leaves: long, eats: long, writes: long, runs: long}
print(json.dumps([confinement.run(task) for task, confinement in tasks.items()]))
"""


def test_all_failures_of_a_mutant_are_detected(tmp_path):
    done = in_a_new_process("-c", TASKS, str(tmp_path))
    dies, hangs, sleeps, leaves, eats, writes, runs = json.loads(done.stdout)
    assert (dies["outcome"], dies["words"], dies["stage"]) == ("crash", "SIGABRT", "here")
    assert "dies" in dies["trace"]
    assert hangs["outcome"] == "hang"
    assert "hangs" in hangs["trace"]
    assert sleeps["outcome"] == "hang"
    assert "sleeps" in sleeps["trace"]
    assert leaves["outcome"] == "file left behind"
    assert (eats["outcome"], eats["words"]) == ("broken harness", "MemoryError: ")
    assert "OSError" in writes["words"]
    assert runs["outcome"] == "ran"
    assert runs["peak"] > 1 << 20


@pytest.mark.parametrize("outcome", FAILURES)
def test_each_failure_is_counted(outcome, tmp_path):
    tally = Tally(1)
    tally.add({"index": 7, "outcome": outcome, "family": LIE, "seconds": 0.5, "peak": 5, "words": "why", "done": ["a"]})
    assert tally.to_dict()["failures"][outcome] == 1
    assert f"{outcome} (1): why" in tally.text(tmp_path)


def test_the_harness_of_the_reader(tmp_path):
    from tests.fuzz.reader_atheris import corpus, one_input

    corpus(tmp_path)
    files = sorted(tmp_path.iterdir())
    assert len(files) == len(models()) + len(REGRESSIONS)
    for data in (*(f.read_bytes() for f in files), b"", b"<net/>", b"\xff\xfe", b'<net version="11"><layers><layer/>'):
        one_input(data)

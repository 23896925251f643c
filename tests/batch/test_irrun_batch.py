"""irrun batch: inputs and outputs of every kind, options, failures, resumption."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import irload
from irrun.main import FINDINGS, OK, UNREADABLE, USAGE
from tests.batch.kill import MODEL, digits, torture
from tests.batch.models import unary
from tests.harness.tiers import tiered

LABELS = MODEL.parent / "labels.txt"
SEVERAL_WORKERS = True


@pytest.fixture(scope="module")
def model():
    return irload.compile_model(MODEL)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [1, 7, 64])
def test_each_result_equals_that_of_a_single_sample(batch, model, tmp_path, size):
    samples = digits(tmp_path / "in", 100)
    report = batch(tmp_path / "in", "-o", tmp_path / "out", "--batch-size", size)
    assert (report["done"], report["failed"], report["samples"]) == (100, 0, 100)
    for k, sample in enumerate(samples):
        array = np.load(tmp_path / "out" / f"{k:06}.npz")["probabilities"]
        np.testing.assert_allclose(array, model(sample[None])[0], atol=1e-6)
        assert array.shape == (1, 10)


def test_lone_samples_stacks_and_npy(batch, model, tmp_path):
    samples = digits(tmp_path / "in", 3)
    np.save(tmp_path / "in" / "single.npy", samples[0])
    np.save(tmp_path / "in" / "stack.npy", samples)
    report = batch(tmp_path / "in" / "*.npy", "-o", tmp_path / "out", "--format", "npy", "--batch-size", 2)
    assert (report["items"], report["samples"]) == (5, 7)
    assert np.load(tmp_path / "out" / "single.npy").shape == (10,)
    np.testing.assert_allclose(np.load(tmp_path / "out" / "stack.npy"), model(samples)[0], atol=1e-6)


def test_names_follow_the_folders(batch, tmp_path):
    digits(tmp_path / "in" / "a", 1)
    digits(tmp_path / "in" / "b", 1)
    batch(tmp_path / "in" / "*" / "*.npy", "-o", tmp_path / "out", "--workers", 2, "--threads", 2)
    assert sorted(p.relative_to(tmp_path).as_posix() for p in (tmp_path / "out").rglob("*.npz")) == [
        "out/a/000000.npz",
        "out/b/000000.npz",
    ]


def test_greatest_values_as_lines(batch, model, tmp_path):
    samples = digits(tmp_path / "in", 20)
    batch(tmp_path / "in", "-o", tmp_path / "o.jsonl", "--top", 2, "--labels", LABELS, "--batch-size", 3)
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [line["input"] for line in lines] == [str(tmp_path / "in" / f"{k:06}.npy") for k in range(20)]
    names = LABELS.read_text().splitlines()
    for line, sample in zip(lines, samples, strict=True):
        best, second = line["probabilities"]
        wanted = model(sample[None])[0][0]
        assert best["label"] == names[wanted.argmax()]
        assert best["value"] == pytest.approx(wanted.max(), abs=1e-6)
        assert best["value"] >= second["value"]


def bad_files(folder, count, rng):
    """Replaces files: truncated, of a wrong shape, of a wrong dtype, not arrays."""
    names = rng.choice(sorted(folder.glob("*.npy")), count, replace=False)
    for k, file in enumerate(names):
        if k % 4 == 0:
            file.write_bytes(file.read_bytes()[:200])
        elif k % 4 == 1:
            np.save(file, np.zeros((1, 1, 8, 9), np.float32))
        elif k % 4 == 2:
            np.save(file, np.full((1, 1, 8, 8), 1j, np.complex64))
        else:
            file.write_text("no array")
    return {str(f) for f in names}


def test_a_job_continues_after_bad_items(batch, tmp_path):
    digits(tmp_path / "in", 500)
    shutil.copytree(tmp_path / "in", tmp_path / "mended")
    bad = bad_files(tmp_path / "in", 25, np.random.default_rng(0))
    report = batch(tmp_path / "in", "-o", tmp_path / "out", "--batch-size", 32, code=FINDINGS)
    assert (report["done"], report["failed"], report["finished"]) == (475, 25, True)
    assert {f["input"] for f in report["failures"]} == bad
    reasons = " ".join(f["reason"] for f in report["failures"])
    for word in (
        "takes 256 bytes after its header",
        "has shape [1,1,8,9]",
        "of dtype complex64",
        "is not a .npy array",
    ):
        assert word in reasons
    assert len(list((tmp_path / "out").glob("*.npz"))) == 475

    for name in bad:
        shutil.copy(tmp_path / "mended" / Path(name).name, name)
    again = batch(tmp_path / "in", "-o", tmp_path / "out", "--resume")
    assert (again["before"], again["done"], again["failed"]) == (475, 25, 0)


def test_failed_rows_are_added_after_they_are_repaired(batch, tmp_path):
    digits(tmp_path / "in", 40)
    shutil.copytree(tmp_path / "in", tmp_path / "mended")
    bad = bad_files(tmp_path / "in", 5, np.random.default_rng(1))
    out = tmp_path / "o.parquet"
    assert batch(tmp_path / "in", "-o", out, "--batch-size", 8, code=FINDINGS)["done"] == 35
    for name in bad:
        shutil.copy(tmp_path / "mended" / Path(name).name, name)
    assert batch(tmp_path / "in", "-o", out, "--batch-size", 8, "--resume")["before"] == 35
    assert pq.read_table(out)["input"].to_pylist() == sorted(map(str, (tmp_path / "in").iterdir()))


def test_fail_fast_stops_and_keeps(batch, tmp_path):
    digits(tmp_path / "in", 50)
    (tmp_path / "in" / "000010.npy").write_text("no array")
    report = batch(tmp_path / "in", "-o", tmp_path / "out", "--batch-size", 4, "--fail-fast", code=FINDINGS)
    assert report["failed"] == 1
    assert report["done"] < 49
    assert not report["finished"]


def test_nothing_is_overwritten_without_force(batch, tmp_path):
    digits(tmp_path / "in", 2)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "000001.npz").write_text("mine")
    words = (tmp_path / "in", "-o", tmp_path / "out")
    assert "000001.npz exists already; --force replaces it" in batch(*words, code=USAGE)
    assert (tmp_path / "out" / "000001.npz").read_text() == "mine"
    assert not (tmp_path / "out" / "000000.npz").exists()
    batch(*words, "--force")
    assert "--resume continues that job" in batch(*words, code=USAGE)
    assert batch(*words, "--resume")["before"] == 2
    refused = batch(*words, "--resume", "--format", "npy", "--cast", code=USAGE)
    assert (
        "started with other options (format: 'npz', now 'npy'; cast: False, now True); --force restarts it" in refused
    )


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("form", "kills"), [("folder", 2), ("parquet", 1), ("jsonl", 1)])
def test_killed_and_resumed(tmp_path, form, kills):
    kills = tiered(kills, 3)
    hits = torture(tmp_path, kills, 5, tiered(800, 1500), form, delay=1.2)
    assert hits["parent"] + hits["worker"] == kills
    assert hits["before"]


def test_a_full_disk_keeps_finished_items(tmp_path):
    """A limit on file sizes simulates a full disk: writing fails in the same way."""
    np.save(tmp_path / "a.npy", np.zeros((3, 1, 8, 8), np.float32))
    np.save(tmp_path / "b.npy", np.zeros((2_500, 1, 8, 8), np.float32))
    np.save(tmp_path / "c.npy", np.zeros((3, 1, 8, 8), np.float32))
    script = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (80_000, 80_000)); "
    script += "from irrun.main import main; sys.exit(main())"
    words = ["batch", MODEL, tmp_path / "?.npy", "-o", tmp_path / "out", "--batch-size", "1"]
    job = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # Python would cache truncated files
        check=False,
    )
    assert job.returncode == UNREADABLE, job.stderr
    assert "1 finished items are kept, and --resume continues the job" in job.stderr
    assert [p.name for p in (tmp_path / "out").glob("*.npz")] == ["a.npz"]
    job = subprocess.run(
        [sys.executable, "-m", "irrun", *map(str, words), "--resume", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (json.loads(job.stdout)["before"], json.loads(job.stdout)["done"]) == (1, 2)


def test_plain_progress_and_summary(irrun, tmp_path, monkeypatch):
    monkeypatch.setattr("irrun.batch_progress.INTERVAL", 0)
    digits(tmp_path / "in", 30)
    outcome = irrun("batch", MODEL, tmp_path / "in", "-o", tmp_path / "out", "--batch-size", 10)
    assert outcome.code == OK
    assert outcome.out == ""
    assert "20/30 items, " in outcome.err
    assert "30 done, " in outcome.err
    assert "\x1b" not in outcome.err


def test_a_bar_on_a_terminal(irrun, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    digits(tmp_path / "in", 30)
    outcome = irrun("batch", MODEL, tmp_path / "in", "-o", tmp_path / "out", "--batch-size", 10)
    assert "/30" in outcome.err
    assert "items/s" in outcome.err


def test_a_missing_input(irrun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = irrun("batch", MODEL, "nowhere", "-o", "out")
    assert (outcome.code, outcome.err.strip()) == (UNREADABLE, "irrun: error: nowhere: no such file or folder")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("x.txt",), "x.txt has an unsupported suffix"),
        (("empty",), "no supported files"),
        (("ghost=in",), "the model has no input 'ghost'"),
        (("in", "--format", "npy", "-o", "o.parquet"), "--format npy requires a folder"),
        (("in", "-o", "o.npz"), "would be a folder"),
        (("in", "--resize", "big"), "'big' is not of the form"),
        (("in", "--crop", "0x3"), "'0x3' is not of the form"),
        (("in", "--engine", "ray"), "--engine ray requires a .parquet"),
    ],
)
def test_usage(irrun, tmp_path, monkeypatch, words, said):
    if "ray" in words:
        pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    digits(tmp_path / "in", 1)
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.txt").touch()
    output = () if "-o" in words else ("-o", "out")
    outcome = irrun("batch", MODEL, *words, *output)
    assert outcome.code == USAGE
    assert said in " ".join(outcome.err.split())


EXTENSION = """
from irload import Op


class Twice(Op, type="Twice", opset="mine"):
    def infer(self, x):
        return x

    def compute(self, x):
        return x + x
"""


@pytest.mark.usefixtures("passing_extensions")
def test_user_defined_operations_reach_the_workers(batch, tmp_path):
    (tmp_path / "mine.py").write_text(EXTENSION)
    model = unary(tmp_path / "m.xml", "?,4", "Twice", opset="mine")
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    batch(tmp_path / "x.npy", "-o", tmp_path / "o", "--extension", tmp_path / "mine.py", model=model)
    assert np.load(tmp_path / "o" / "x.npz")["y"].tolist() == [[2.0] * 4] * 2


PICKY = """
from irload import ExecutionError, Op


class Picky(Op, type="Picky", opset="mine"):
    def infer(self, x):
        return x

    def compute(self, x):
        if (x < 0).any():
            raise ExecutionError("is negative")
        return x
"""


@pytest.mark.usefixtures("passing_extensions")
@pytest.mark.parametrize("size", [(), ("--batch-size", 6)])
def test_a_failing_inference_affects_one_item(batch, tmp_path, size):
    (tmp_path / "picky.py").write_text(PICKY)
    model = unary(tmp_path / "m.xml", "?,4", "Picky", opset="mine")
    (tmp_path / "in").mkdir()
    for k in range(6):
        np.save(tmp_path / "in" / f"{k}.npy", np.full((1, 4), -k if k == 2 else k, np.float32))
    words = (tmp_path / "in", "-o", tmp_path / "o", "--extension", tmp_path / "picky.py", *size)
    report = batch(*words, model=model, code=FINDINGS)
    assert report["done"] == 5
    assert [f["input"] for f in report["failures"]] == [str(tmp_path / "in" / "2.npy")]
    assert "is negative" in report["failures"][0]["reason"]
    assert [np.load(tmp_path / "o" / f"{k}.npz")["y"][0, 0] for k in (0, 1, 3, 4, 5)] == [0, 1, 3, 4, 5]


def test_the_help_shows_how(irrun):
    shown = irrun("batch", "--help").out
    for words in ("photos/ -o top.jsonl", "ids='ids/*.npy'", "rows.parquet -o scores.parquet"):
        assert f"\n    irrun batch model.xml {words}" in shown
    assert "\\b" not in shown

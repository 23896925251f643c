"""Kills the parent or a worker of a batch job at random moments, resumes the job until it completes, checks results.

python -m tests.batch.kill [KILLS] [SEED] [ITEMS] [folder|parquet|jsonl]
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

import irload

HANGING = 1800
"""Seconds after which a job counts as hanging: far more than the slowest machine needs."""
MODEL = Path(__file__).parents[2] / "models" / "digits" / "model.xml"


def digits(folder: Path, count: int) -> np.ndarray:
    """`count` different samples, each a file."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(3).uniform(0, 16, (count, 1, 8, 8)).astype(np.float32)
    for k, sample in enumerate(samples):
        np.save(folder / f"{k:06}.npy", sample[None])
    return samples


def children(pid: int) -> list[int]:
    """The worker processes of a parent, from /proc."""
    pids: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            words = (entry / "cmdline").read_text()
        except OSError:
            continue
        if int(fields[1]) == pid and "spawn_main" in words:
            pids.append(int(entry.name))
    return pids


def start(inputs: Path, output: Path, workers: int) -> subprocess.Popen[str]:
    words = ["batch", MODEL, inputs, "-o", output, "--resume", "--batch-size", 16, "--workers", workers, "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "irrun", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def strike(parent: subprocess.Popen[str], rng: random.Random, delay: float, *, whole: bool) -> str:
    """Wait, then kill the parent or one of its workers. Returns which."""
    time.sleep(rng.uniform(0.05, delay))
    if parent.poll() is not None:
        return "nothing"
    if whole:
        parent.kill()
        return "parent"
    workers = children(parent.pid)
    if not workers:
        return "nothing"
    os.kill(rng.choice(workers), signal.SIGKILL)
    return "worker"


def kill_amid(job: subprocess.Popen[str], output: Path, form: str) -> bool:
    """Kill the parent once it has recorded results. False if the job ended before.

    A worker holds two tasks of 16 items at most and gets further ones once its results are recorded, so the results of
    a fifth task of two workers show that the results of the first are recorded.
    """
    folder, least = (output, 65) if form == "folder" else (output.with_name(f"{output.name}.batch") / "parts", 5)
    while job.poll() is None:
        if len(list(folder.glob("*.npz" if form == "folder" else "*.part"))) >= least:
            job.kill()
            return True
        time.sleep(0.005)
    return False


def torture(folder: Path, kills: int, seed: int, items: int, form: str, delay: float = 2.0) -> dict[str, int]:
    """Run a job that is killed `kills` times. Raises AssertionError for an item lost, duplicated or truncated."""
    samples = digits(folder / "in", items)
    output = folder / ("out" if form == "folder" else f"out.{form}")
    rng = random.Random(seed)
    hits = {"parent": 0, "worker": 0, "runs": 0, "rounds": 0, "before": 0}
    while hits["parent"] + hits["worker"] < kills:
        hits["runs"] += 1
        job = start(folder / "in", output, 2)
        if not hits["parent"]:
            hits["parent"] += kill_amid(job, output, form)
            job.wait()
        while job.poll() is None and hits["parent"] + hits["worker"] < kills:
            hit = strike(job, rng, delay, whole=rng.random() < 0.5)
            if hit != "nothing":
                hits[hit] += 1
        if job.poll() is None:  # the last kill hit a worker: the job continues
            job.wait(timeout=HANGING)
        report, errors = job.communicate()
        given_up = "workers died while loading" in errors  # workers killed three times while loading; resumed, too
        assert job.returncode in (0, -signal.SIGKILL) or given_up, errors
        if job.returncode == 0 and hits["parent"] + hits["worker"] < kills:
            check(output, form, samples, json.loads(report))
            hits["before"] += json.loads(report)["before"]
            hits["rounds"] += 1
            output = output.with_name(f"{hits['rounds']}{output.name}")
    last = start(folder / "in", output, 2)
    report, errors = last.communicate(timeout=HANGING)
    assert last.returncode == 0, errors
    check(output, form, samples, json.loads(report))
    hits["before"] += json.loads(report)["before"]
    return hits


def check(output: Path, form: str, samples: np.ndarray, report: dict) -> None:
    """Every item exactly once, with the same result as in a separate inference."""
    count = len(samples)
    assert report["before"] + report["done"] == count
    model = irload.compile_model(MODEL)
    wanted = np.concatenate([model(samples[k : k + 256])[0] for k in range(0, count, 256)])
    names = [f"{k:06}.npy" for k in range(count)]
    written = {"folder": of_folder, "parquet": of_parquet, "jsonl": of_lines}[form](output)
    assert [Path(n).name for n, _ in written] == names
    for (_, values), expected in zip(written, wanted, strict=True):
        if values is not None:
            np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)
    with closing(sqlite3.connect(report["manifest"])) as manifest:
        rows = manifest.execute("SELECT count(*), count(DISTINCT input), sum(status = 'done') FROM items").fetchone()
    assert rows == (count, count, count)
    job = Path(report["manifest"]).parent
    assert sorted(p.name for p in job.iterdir()) == ["manifest.sqlite"], "files were left behind"


def of_folder(output: Path) -> list[tuple[str, np.ndarray | None]]:
    files = sorted(output.glob("*.npz"))
    assert len(files) == sum(1 for f in output.iterdir() if f.name != ".batch")
    return [(f"{f.stem}.npy", np.load(f)["probabilities"][0]) for f in files]


def of_parquet(output: Path) -> list[tuple[str, np.ndarray | None]]:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(output).to_pylist()
    return [(row["input"], np.array(row["probabilities"])) for row in table]


def of_lines(output: Path) -> list[tuple[str, np.ndarray | None]]:
    return [(json.loads(line)["input"], None) for line in output.read_text().splitlines()]


if __name__ == "__main__":
    kills, seed, items = (int(a) for a in (*sys.argv[1:4], *(20, 1, 10_000)[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as scratch:
        print(torture(Path(scratch), kills, seed, items, sys.argv[4] if len(sys.argv) > 4 else "folder"))
